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
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "netio/caps.h"
#include "netio/rss.h"
#include "netio/xdp.h"
#include "tap/drops.h"

void pl_doctor_btf(struct pl_finding *f)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		pl_doctor_found(f, "type information of the kernel is there");
	} else {
		pl_doctor_found(f, "no type information of the kernel (BTF)");
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"use a kernel with CONFIG_DEBUG_INFO_BTF, such as Debian's");
	}
}

void pl_doctor_jit(struct pl_finding *f)
{
	char value[16];

	if (pl_doctor_first_line("/proc/sys/net/core/bpf_jit_enable", value, sizeof(value)) < 0) {
		pl_doctor_found(f, "state not readable by this user");
		return;
	}
	pl_doctor_found(f, "net.core.bpf_jit_enable is %s", value);
	if (strcmp(value, "0") == 0)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "sysctl -w net.core.bpf_jit_enable=1");
}

void pl_doctor_af_xdp(struct pl_finding *f)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		pl_doctor_found(f, "AF_XDP sockets can be opened");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		pl_doctor_found(
			f, "the kernel has AF_XDP sockets, but this user may not open them");
		pl_doctor_fix(f, PL_DOCTOR_WARN, "run as root, or see capabilities");
	} else {
		pl_doctor_found(f, "no AF_XDP sockets: %s", strerror(errno));
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"use a kernel with CONFIG_XDP_SOCKETS, such as Debian's");
	}
}

void pl_doctor_capabilities(struct pl_finding *f)
{
	static const struct {
		unsigned int bit;
		const char *name;
	} wanted[] = {
		{ CAP_NET_RAW, "cap_net_raw" }, { CAP_NET_ADMIN, "cap_net_admin" },
		{ 38, "cap_perfmon" }, { 39, "cap_bpf" }, /* since Linux 5.8 */
	};
	char missing[128] = "", self[200] = "";
	uint64_t have = 0;

	if (pl_doctor_keyed_number("/proc/self/status", "CapEff", 16, &have) < 0) {
		pl_doctor_found(f, "cannot be read");
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
		pl_doctor_found(f, "all there");
		return;
	}
	pl_doctor_found(f, "missing: %s; UDP sockets and files need none of them", missing);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		pl_doctor_fix(f, PL_DOCTOR_WARN, "setcap %s+ep %.100s", missing, self);
}

void pl_doctor_packet(struct pl_finding *f)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		pl_doctor_found(f, "sources packet:INTERFACE can be opened");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		pl_doctor_found(
			f, "sources packet:INTERFACE need CAP_NET_RAW, which this process lacks");
		pl_doctor_fix(f, PL_DOCTOR_WARN, "run as root, or see capabilities");
	} else {
		pl_doctor_found(f, "no packet sockets: %s", strerror(errno));
		pl_doctor_fix(
			f, PL_DOCTOR_WARN, "use a kernel with CONFIG_PACKET, such as Debian's");
	}
}

/* The smallest program there is: whether the right and the kernel are there, not whether ours
 * passes. */
void pl_doctor_xdp_program(struct pl_finding *f)
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
		pl_doctor_found(f,
			"XDP programs can be loaded, as afxdp: and the detector in the kernel do%s",
			PL_HAVE_BPF ? "" : "; this build has no XDP programs");
		if (!PL_HAVE_BPF)
			pl_doctor_fix(f, PL_DOCTOR_WARN,
				"build with clang, bpftool and libbpf-dev installed");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		pl_caps_text(pl_caps_missing(PL_CAP_BPF | PL_CAP_NET_ADMIN), caps, sizeof(caps));
		pl_doctor_found(f,
			"afxdp: and the detector in the kernel need to load programs, which %s",
			caps[0] != '\0' ? "this process may not" : "something forbids here");
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			caps[0] != '\0' ? "run as root, or see capabilities; missing: %s"
					: "a container's seccomp profile, or kernel lockdown%s",
			caps);
	} else {
		pl_doctor_found(f, "no XDP programs: %s", strerror(errno));
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"use a kernel with CONFIG_BPF_SYSCALL, such as Debian's");
	}
}

/* The helper that came last of those that the tap's programs call, bpf_ktime_get_tai_ns. */
#define LAST_HELPER 208

void pl_doctor_kernel_tap(struct pl_finding *f)
{
	static const struct bpf_insn program[] = { { .code = 0x85, .imm = LAST_HELPER },
		{ .code = 0xb7, .imm = 0 }, { .code = 0x95 } };
	unsigned int major = 0, minor = 0;
	struct utsname u;
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = 3;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	uname(&u);
	(void)sscanf(u.release, "%u.%u", &major, &minor);
	if (fd >= 0) {
		pl_doctor_found(f, "taps in the kernel (xdp:, tc:) can be loaded%s",
			!PL_HAVE_BPF ? "; this build has no kernel programs"
			: major > 6 || (major == 6 && minor >= 6)
				? "; tc: is attached by a link"
				: "; tc: is a filter of clsact, one for each interface and direction");
		if (!PL_HAVE_BPF)
			pl_doctor_fix(f, PL_DOCTOR_WARN,
				"build with clang, bpftool and libbpf-dev installed");
	} else if (errno == EPERM || errno == EACCES) {
		pl_doctor_found(f, "taps in the kernel (xdp:, tc:) need CAP_NET_ADMIN and CAP_BPF");
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"run as root, or see capabilities; packet: needs CAP_NET_RAW only");
	} else {
		pl_doctor_found(
			f, "taps in the kernel (xdp:, tc:) need Linux 6.1; this is %s", u.release);
		pl_doctor_fix(f, PL_DOCTOR_WARN, "use packet:, or a newer kernel");
	}
	if (fd >= 0)
		close(fd);
}

void pl_doctor_drops(struct pl_finding *f)
{
	struct pl_diag diag = { .text = "" };

	if (pl_tap_drops_try(&diag) == 0) {
		pl_doctor_found(f, "drops of the kernel (drops:) can be read, with their reasons");
		return;
	}
	pl_doctor_found(f, "%s", diag.text);
	pl_doctor_fix(f, PL_DOCTOR_WARN, "%s",
		PL_HAVE_BPF ? "run as root, or see capabilities, btf and kernel"
			    : "build with clang, bpftool and libbpf-dev installed");
}

void pl_doctor_locked_memory(struct pl_finding *f)
{
	const uint64_t ring = UINT64_C(32)
			      << 20; /* of one queue, with afxdp's default ring of 16384 frames */
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_max == RLIM_INFINITY) {
		pl_doctor_found(f, "no limit");
		return;
	}
	pl_doctor_found(f, "at most %llu KiB; an afxdp: queue takes 32 MiB by default",
		(unsigned long long)limit.rlim_max >> 10);
	if (limit.rlim_max < ring)
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"ulimit -l unlimited as root, LimitMEMLOCK=infinity in a unit, or a smaller ring= in the URI");
}

/* That a driver has XDP shows by attaching only; the holder of an interface can be asked for. */
void pl_doctor_xdp_holders(struct pl_finding *f)
{
#if PL_HAVE_BPF
	struct if_nameindex *all = if_nameindex();
	struct pl_xdp_state state;
	unsigned int taken = 0;
	size_t len;

	pl_doctor_found(f, "no interface has an XDP program");
	for (struct if_nameindex *i = all; i != NULL && i->if_index != 0; i++) {
		if (pl_xdp_query((int)i->if_index, &state) < 0 || state.id == 0 || taken++ > 0)
			continue;
		pl_doctor_found(f, "%s has one: %s (id %u, %s%s%s)", i->if_name,
			state.name[0] != '\0' ? state.name : "name unknown", state.id,
			state.native ? "native" : "generic",
			state.process[0] != '\0' ? ", of " : "", state.process);
		pl_doctor_fix(f, PL_DOCTOR_WARN,
			"afxdp:%s cannot start while it is attached; packet:%s can", i->if_name,
			i->if_name);
	}
	if (all != NULL)
		if_freenameindex(all);
	len = strlen(f->found);
	if (taken > 1)
		snprintf(f->found + len, sizeof(f->found) - len, ", and %u more", taken - 1);
#else
	pl_doctor_found(f, "this build has no XDP and cannot list XDP programs");
#endif
}

void pl_doctor_rss(struct pl_finding *f)
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
		pl_doctor_found(f,
			together > 0
				? "NICs choose the receive queue by addresses only"
				: "no NIC reports how it chooses the receive queue of a datagram");
		return;
	}
	pl_doctor_found(f, "%s chooses the receive queue by ports too%s", first,
		spread > 1 ? ", as others do" : "");
	pl_doctor_fix(f, PL_DOCTOR_WARN,
		"with several queues: ethtool -N %s rx-flow-hash udp4 sd, and udp6", first);
}
