/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the veth pair of benchmarks, between two network namespaces. */
#include "tests/bench/wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/complain.h"
#include "gen/gen.h"
#include "netio/test_veth.h"

#define HEADERS_BYTES 42u /* Ethernet, IPv4, UDP */

int pl_wire_enter(const struct pl_wire *w, enum pl_wire_side side)
{
	return setns(w->ns[side], CLONE_NEWNET) < 0 ? -errno : 0;
}

static int own_namespace(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A namespace where nothing but ours is on the wire. */
static int new_namespace(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	(void)veth_hush(); /* otherwise a few frames more among millions */
	return own_namespace();
}

static int open_sides(struct pl_wire *w, bool at_home)
{
	w->ns[PL_WIRE_HOME] = own_namespace();
	if (at_home)
		w->ns[PL_WIRE_RECEIVER] = own_namespace();
	for (int side = PL_WIRE_HOME; side < PL_WIRE_SIDES; side++) {
		if (side != PL_WIRE_HOME && w->ns[side] < 0)
			w->ns[side] = new_namespace();
		if (w->ns[side] < 0)
			return w->ns[side];
	}
	return 0;
}

static int set_up(struct pl_wire *w, unsigned int queues, bool at_home)
{
	int r = open_sides(w, at_home);

	if (r < 0)
		return r;
	r = pl_wire_enter(w, PL_WIRE_SENDER);
	if (r == 0)
		r = veth_make(PL_WIRE_SENDER_NAME, PL_WIRE_RECEIVER_NAME, w->ns[PL_WIRE_RECEIVER],
			queues);
	if (r == 0)
		r = pl_rtnl_up(PL_WIRE_SENDER_NAME, true);
	w->ifindex[PL_WIRE_SENDER] = (int)if_nametoindex(PL_WIRE_SENDER_NAME);
	if (r == 0)
		r = pl_wire_enter(w, PL_WIRE_RECEIVER);
	if (r == 0)
		r = pl_rtnl_up(PL_WIRE_RECEIVER_NAME, true);
	w->ifindex[PL_WIRE_RECEIVER] = (int)if_nametoindex(PL_WIRE_RECEIVER_NAME);
	return r;
}

static int open_wire(struct pl_wire *w, unsigned int queues, bool at_home, struct pl_diag *diag)
{
	int r;

	memset(w, 0, sizeof(*w));
	w->ns[PL_WIRE_HOME] = w->ns[PL_WIRE_SENDER] = w->ns[PL_WIRE_RECEIVER] = -1;
	r = set_up(w, queues, at_home);
	if (w->ns[PL_WIRE_HOME] >= 0)
		(void)pl_wire_enter(w, PL_WIRE_HOME);
	if (r == 0) {
		pl_bench_raise(&w->priority);
		return 0;
	}
	pl_diag_set(diag,
		r == -EPERM ? "a veth pair between two namespaces: run as root"
			    : "a veth pair between two namespaces: %s",
		strerror(-r));
	pl_wire_close(w);
	return r;
}

int pl_wire_open(struct pl_wire *w, unsigned int queues, struct pl_diag *diag)
{
	return open_wire(w, queues, false, diag);
}

int pl_wire_open_at_home(struct pl_wire *w, struct pl_diag *diag)
{
	return open_wire(w, 1, true, diag);
}

void pl_wire_close(struct pl_wire *w)
{
	if (w->ns[PL_WIRE_RECEIVER] >= 0)
		pl_bench_restore(&w->priority);
	for (int side = PL_WIRE_HOME; side < PL_WIRE_SIDES; side++) {
		if (w->ns[side] >= 0)
			close(w->ns[side]);
		w->ns[side] = -1;
	}
}

/* /sys shows the interfaces of the namespace that it was mounted in, so this mounts it anew, in a
 * child. */
static int write_in_child(const struct pl_wire *w, bool threaded)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int fd;

		if (pl_wire_enter(w, PL_WIRE_RECEIVER) < 0 || unshare(CLONE_NEWNS) < 0 ||
			mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("pathline", "/sys", "sysfs", 0, NULL) < 0)
			_exit(1);
		fd = open(
			"/sys/class/net/" PL_WIRE_RECEIVER_NAME "/threaded", O_WRONLY | O_CLOEXEC);
		_exit(fd < 0 || write(fd, threaded ? "1" : "0", 1) != 1 ? 1 : 0);
	}
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static bool is_napi_thread(const char *pid)
{
	static const char prefix[] = "napi/" PL_WIRE_RECEIVER_NAME "-";
	char path[300], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	if (fgets(name, sizeof(name), f) == NULL)
		name[0] = '\0';
	fclose(f);
	return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

/* Calls use() for each NAPI thread of the receiver, and counts those it was good for. Another
 * benchmark's threads of this name are among them; benchmarks run one at a time. */
static int each_thread(int (*use)(pid_t pid, void *arg), void *arg)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int n = 0;

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		if (isdigit((unsigned char)e->d_name[0]) && is_napi_thread(e->d_name) &&
			use((pid_t)strtol(e->d_name, NULL, 10), arg) == 0)
			n++;
	}
	closedir(d);
	return n > 0 ? n : -ESRCH;
}

static int raise_and_pin(pid_t pid, void *cpus)
{
	(void)setpriority(PRIO_PROCESS, (id_t)pid, PL_BENCH_PRIORITY);
	return sched_setaffinity(pid, sizeof(cpu_set_t), cpus) < 0 ? -errno : 0;
}

static int pin_threads(unsigned int cpu)
{
	cpu_set_t allowed, one;
	unsigned int seen = 0;
	int r;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &allowed) && seen++ == cpu)
			CPU_SET(i, &one);
	}
	r = each_thread(raise_and_pin, &one);
	return r < 0 ? r : 0;
}

static int add_time(pid_t pid, void *sum)
{
	char path[64];
	uint64_t ns;
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return -errno;
	n = fscanf(f, "%" SCNu64, &ns);
	fclose(f);
	if (n != 1)
		return -EIO;
	*(uint64_t *)sum += ns;
	return 0;
}

uint64_t pl_wire_napi_cpu_ns(void)
{
	uint64_t sum = 0;

	return each_thread(add_time, &sum) < 0 ? 0 : sum;
}

int pl_wire_threaded_napi(const struct pl_wire *w, bool threaded, unsigned int cpu)
{
	int r = write_in_child(w, threaded);

	return r < 0 || !threaded ? r : pin_threads(cpu);
}

int pl_wire_address(const char *ifname, const char *address)
{
	struct ifreq request = { .ifr_name = "" };
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&request.ifr_addr;
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = 0;

	if (s < 0)
		return -errno;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	a->sin_addr.s_addr = inet_addr(address);
	if (ioctl(s, SIOCSIFADDR, &request) < 0)
		r = -errno;
	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	a->sin_addr.s_addr = inet_addr("255.255.255.0");
	if (r == 0 && ioctl(s, SIOCSIFNETMASK, &request) < 0)
		r = -errno;
	close(s);
	return r;
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

int pl_wire_frame(uint8_t *dst, uint32_t cap, const uint8_t *payload, uint32_t payload_bytes)
{
	static const uint8_t headers[HEADERS_BYTES] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		/* IPv4 10.0.0.1 to 10.0.0.2, don't fragment */
		0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		/* UDP 32766 to 32766, without a checksum */
		0x7f, 0xfe, 0x7f, 0xfe, 0, 0, 0, 0 };
	uint32_t sum = 0;

	if (cap < HEADERS_BYTES || payload_bytes > cap - HEADERS_BYTES)
		return -EMSGSIZE;
	memcpy(dst, headers, HEADERS_BYTES);
	memcpy(dst + HEADERS_BYTES, payload, payload_bytes);
	put16(dst + 16, 28 + payload_bytes);
	put16(dst + 38, 8 + payload_bytes);
	for (unsigned int i = 14; i < 34; i += 2)
		sum += (uint32_t)dst[i] << 8 | dst[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(dst + 24, ~(sum + (sum >> 16)) & 0xffff);
	return (int)(HEADERS_BYTES + payload_bytes);
}

int pl_wire_report(uint8_t *dst, uint32_t cap, unsigned int hops, uint16_t bitmap,
	enum pl_dialect dialect, const char *name)
{
	char topology[32];
	struct pl_gen_cfg cfg = { .topology = topology,
		.flows = 1,
		.seed = 1,
		.bitmap = bitmap,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.mode = PL_GEN_MD,
		.carrier = PL_GEN_UDP,
		.sink = PL_GEN_SINK_STACK,
		.proto = PL_GEN_PROTO_UDP,
		.queue = { PL_DIST_CONST, 5, 0 },
		.dialect = dialect,
		.udp = true };
	struct pl_batch *batch = malloc(sizeof(*batch));
	struct pl_diag diag = { .text = "" };
	struct pl_gen *gen;
	int r = -ENOMEM;

	snprintf(topology, sizeof(topology), "chain:%u", hops);
	if (batch != NULL)
		r = pl_gen_new(&gen, &cfg, &diag);
	if (r == 0) {
		r = pl_gen_next(gen, UINT64_MAX, batch);
		if (r > 0)
			r = pl_wire_frame(dst, cap, batch->pkts[0].data, batch->pkts[0].len);
		else if (r == 0)
			r = -ENODATA;
		pl_gen_free(gen);
	}
	free(batch);
	if (r < 0)
		pl_complain("benchmark %s: %s", name, diag.text[0] ? diag.text : strerror(-r));
	return r;
}

uint64_t pl_wire_counted(int map_fd)
{
	uint64_t values[256] = { 0 }, sum = 0;
	const int cpus = libbpf_num_possible_cpus();
	const uint32_t zero = 0;

	if (cpus <= 0 || cpus > 256 || bpf_map_lookup_elem(map_fd, &zero, values) < 0)
		return 0;
	for (int i = 0; i < cpus; i++)
		sum += values[i];
	return sum;
}
