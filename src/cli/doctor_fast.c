/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports on interfaces and the detector in the kernel: what they need, tried or read one by one.
 * Nothing is attached. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "netio/caps.h"
#include "netio/rss.h"
#include "netio/xdp.h"

void doctor_btf(struct finding *f)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		doctor_found(f, "type information of the kernel is there");
	} else {
		doctor_found(f, "no type information of the kernel (BTF)");
		doctor_fix(f, STATUS_WARN,
			"use a kernel with CONFIG_DEBUG_INFO_BTF, such as Debian's");
	}
}

void doctor_jit(struct finding *f)
{
	char value[16];

	if (doctor_first_line("/proc/sys/net/core/bpf_jit_enable", value, sizeof(value)) < 0) {
		doctor_found(f, "state not readable by this user");
		return;
	}
	doctor_found(f, "net.core.bpf_jit_enable is %s", value);
	if (strcmp(value, "0") == 0)
		doctor_fix(f, STATUS_WARN, "sysctl -w net.core.bpf_jit_enable=1");
}

void doctor_af_xdp(struct finding *f)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		doctor_found(f, "AF_XDP sockets can be opened");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		doctor_found(f, "the kernel has AF_XDP sockets, but this user may not open them");
		doctor_fix(f, STATUS_WARN, "run as root, or see capabilities");
	} else {
		doctor_found(f, "no AF_XDP sockets: %s", strerror(errno));
		doctor_fix(
			f, STATUS_WARN, "use a kernel with CONFIG_XDP_SOCKETS, such as Debian's");
	}
}

void doctor_capabilities(struct finding *f)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} wanted[] = {
		{ CAP_NET_RAW, "cap_net_raw" }, { CAP_NET_ADMIN, "cap_net_admin" },
		{ 39, "cap_bpf" }, /* CAP_BPF, since Linux 5.8 */
	};
	char missing[128] = "", self[200] = "";
	uint64_t have = 0;

	if (doctor_keyed_number("/proc/self/status", "CapEff", 16, &have) < 0) {
		doctor_found(f, "cannot be read");
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if ((have >> wanted[i].bit & 1) != 0)
			continue;
		if (missing[0] != '\0')
			strncat(missing, ",", sizeof(missing) - strlen(missing) - 1);
		strncat(missing, wanted[i].name, sizeof(missing) - strlen(missing) - 1);
	}
	if (missing[0] == '\0') {
		doctor_found(f, "all there");
		return;
	}
	doctor_found(f, "missing: %s; UDP sockets and files need none of them", missing);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		doctor_fix(f, STATUS_WARN, "setcap %s+ep %.100s", missing, self);
}

void doctor_packet(struct finding *f)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		doctor_found(f, "sources packet:INTERFACE can be opened");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		doctor_found(
			f, "sources packet:INTERFACE need CAP_NET_RAW, which this process lacks");
		doctor_fix(f, STATUS_WARN, "run as root, or see capabilities");
	} else {
		doctor_found(f, "no packet sockets: %s", strerror(errno));
		doctor_fix(f, STATUS_WARN, "use a kernel with CONFIG_PACKET, such as Debian's");
	}
}

/* The smallest program there is: whether the right and the kernel are there, not whether ours
 * passes. */
void doctor_xdp_program(struct finding *f)
{
	static const struct bpf_insn pass[] = { { .code = 0xb7, .imm = 2 }, { .code = 0x95 } };
	union bpf_attr attr;
	char caps[96];
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uint64_t)(uintptr_t)pass;
	attr.insn_cnt = 2;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd >= 0) {
		doctor_found(f,
			"XDP programs can be loaded, as afxdp: and the detector in the kernel do%s",
			PL_HAVE_BPF ? "" : "; this build has no XDP programs");
		if (!PL_HAVE_BPF)
			doctor_fix(f, STATUS_WARN,
				"build with clang, bpftool and libbpf-dev installed");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN), caps, sizeof(caps));
		doctor_found(f,
			"afxdp: and the detector in the kernel need to load programs, which %s",
			caps[0] != '\0' ? "this process may not" : "something forbids here");
		doctor_fix(f, STATUS_WARN,
			caps[0] != '\0' ? "run as root, or see capabilities; missing: %s"
					: "a container's seccomp profile, or kernel lockdown%s",
			caps);
	} else {
		doctor_found(f, "no XDP programs: %s", strerror(errno));
		doctor_fix(
			f, STATUS_WARN, "use a kernel with CONFIG_BPF_SYSCALL, such as Debian's");
	}
}

void doctor_locked_memory(struct finding *f)
{
	const uint64_t ring = UINT64_C(32)
			      << 20; /* of one queue, with afxdp's default ring of 16384 frames */
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_max == RLIM_INFINITY) {
		doctor_found(f, "no limit");
		return;
	}
	doctor_found(f, "at most %llu KiB; an afxdp: queue takes 32 MiB by default",
		(unsigned long long)limit.rlim_max >> 10);
	if (limit.rlim_max < ring)
		doctor_fix(f, STATUS_WARN,
			"ulimit -l unlimited as root, LimitMEMLOCK=infinity in a unit, or a smaller ring= in the URI");
}

/* Whether a driver has XDP is seen by attaching only; who has an interface now can be asked. */
void doctor_xdp_holders(struct finding *f)
{
#if PL_HAVE_BPF
	struct if_nameindex *all = if_nameindex();
	struct pl_xdp_state state;
	unsigned int taken = 0;
	size_t len;

	doctor_found(f, "no interface has an XDP program");
	for (struct if_nameindex *i = all; i != NULL && i->if_index != 0; i++) {
		if (pl_xdp_query((int)i->if_index, &state) < 0 || state.id == 0 || taken++ > 0)
			continue;
		doctor_found(f, "%s has one: %s (id %u, %s%s%s)", i->if_name,
			state.name[0] != '\0' ? state.name : "name unknown", state.id,
			state.native ? "native" : "generic",
			state.process[0] != '\0' ? ", of " : "", state.process);
		doctor_fix(f, STATUS_WARN,
			"afxdp:%s cannot start while it is attached; packet:%s can", i->if_name,
			i->if_name);
	}
	if (all != NULL)
		if_freenameindex(all);
	len = strlen(f->found);
	if (taken > 1)
		snprintf(f->found + len, sizeof(f->found) - len, ", and %u more", taken - 1);
#else
	doctor_found(f, "this build has no XDP and cannot list XDP programs");
#endif
}

void doctor_rss(struct finding *f)
{
	struct if_nameindex *all = if_nameindex();
	unsigned int spread = 0, together = 0;
	char first[IF_NAMESIZE] = "";

	for (const struct if_nameindex *i = all; i != NULL && i->if_index != 0; i++) {
		enum pl_rss rss = pl_rss_of(i->if_name);

		together += rss == PL_RSS_ADDRESSES;
		if (rss == PL_RSS_PORTS && spread++ == 0)
			snprintf(first, sizeof(first), "%s", i->if_name);
	}
	if (all != NULL)
		if_freenameindex(all);
	if (spread == 0) {
		doctor_found(f,
			together > 0
				? "NICs choose the receive queue by addresses only"
				: "no NIC reports how it chooses the receive queue of a datagram");
		return;
	}
	doctor_found(f, "%s chooses the receive queue by ports too%s", first,
		spread > 1 ? ", as others do" : "");
	doctor_fix(f, STATUS_WARN,
		"with several queues: ethtool -N %s rx-flow-hash udp4 sd, and udp6", first);
}
