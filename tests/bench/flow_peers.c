/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole programs with a flow cache over one capture of 64 k TCP flows: pathline tap, softflowd, pmacctd with its
 * plugin nfprobe. Each reads the file, has room for 128 k flows, and exports them as IPFIX to a port of
 * this process, which nobody reads. What counts is the processor time of a program and of all
 * processes that it starts, its start and end included. The ceiling is libpcap alone walking the same file.
 */
#include "tests/bench/flow_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/file.h"
#include "netio/port.h"
#include "tests/bench/walk_pcap.h"
#include "wire/build.h"

enum {
	FLOWS = 1 << 16,
	BATCH = PL_BATCH_MAX,
	HEADERS =
		14 + 20 + 32, /* Ethernet, IPv4, TCP with timestamps: so much of a packet is kept */
	SENT = 100,           /* bytes from a client, and back */
	ANSWERED = 1000,
	ROOM = 2 * FLOWS, /* flows */
};
#define PACKETS_DEFAULT (UINT64_C(16) * FLOWS)
#define RECORD_BYTES    (16 + HEADERS) /* of the capture, for each packet */
#define LIMIT_NS        UINT64_C(120000000000)
#define PIPE_BYTES      512 /* of pmacctd, for each packet: what it reads ahead waits there */

struct peers {
	char dir[200], capture[256];
	uint64_t packets; /* in the capture */
	int sink;
	uint16_t port;
	char *const *args; /* of the program at work */
	struct pl_batch batch;
	uint8_t frames[BATCH][HEADERS];
};

/* ---- the capture ---- */

static void put_frame(uint8_t *frame, uint64_t i)
{
	const uint32_t flow = (uint32_t)i * 2654435761u % FLOWS, turn = (uint32_t)(i / FLOWS);
	const bool back = turn % 2 != 0;
	const uint32_t client = 0x0a000000u + flow / 16, server = 0xc0000201u;
	const uint16_t port = (uint16_t)(40000 + flow % 16), bytes = back ? ANSWERED : SENT;
	struct pl_build b = pl_build(frame, HEADERS);

	pl_put_zero(&b, 12);
	pl_put_be16(&b, 0x0800);
	pl_put_be16(&b, 0x4500);
	pl_put_be16(&b, (uint16_t)(20 + 32 + bytes));
	pl_put_be32(&b, (uint32_t)i << 16 | 0x4000);
	pl_put_be32(&b, 64u << 24 | 6u << 16);
	pl_put_be32(&b, back ? server : client);
	pl_put_be32(&b, back ? client : server);
	pl_put_be16(&b, back ? 443 : port);
	pl_put_be16(&b, back ? port : 443);
	pl_put_be32(&b, 1 + turn / 2 * (back ? ANSWERED : SENT));
	pl_put_be32(&b, 1 + (turn + 1) / 2 * (back ? SENT : ANSWERED));
	pl_put_be32(&b, 0x80180400); /* 32 bytes, ACK and PSH, window */
	pl_put_be32(&b, 0);
	pl_put_be32(&b, 0x0101080a); /* timestamps */
	pl_put_be32(&b, 1 + turn);
	pl_put_be32(&b, turn);
}

static int make_capture(struct peers *p)
{
	struct pl_port *port = NULL;
	int r = pl_port_open(&port, p->capture, PL_PORT_SEND, NULL, NULL), closed;

	for (uint64_t i = 0; r >= 0 && i < p->packets; i += p->batch.n) {
		p->batch.n = p->packets - i < BATCH ? (uint32_t)(p->packets - i) : BATCH;
		for (uint32_t k = 0; k < p->batch.n; k++) {
			put_frame(p->frames[k], i + k);
			p->batch.pkts[k] = (struct pl_packet){ .data = p->frames[k],
				.len = HEADERS,
				.wire_len = HEADERS + ((i + k) / FLOWS % 2 != 0 ? ANSWERED : SENT),
				.ts_ns = UINT64_C(1700000000000000000) + (i + k) * 1000,
				.link = PL_LINK_ETHERNET };
		}
		r = pl_port_send(port, &p->batch, NULL);
	}
	closed = port != NULL ? pl_port_close(port) : 0;
	return r < 0 ? r : closed;
}

/* ---- a program, with all that it starts ---- */

struct ended {
	int status; /* of the program itself, as wait(2) gives it */
	uint64_t ns;
};

/* In a process of its own. */
static void be_program(const struct peers *p)
{
	char log[224];
	int fd;

	snprintf(log, sizeof(log), "%s/log", p->dir);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0 &&
		chdir(p->dir) == 0)
		(void)execvp(p->args[0], p->args);
	_exit(127);
}

static uint64_t time_of_children(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_CHILDREN, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * UINT64_C(1000000000) +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* What the program leaves behind is this process's to wait for. The program's status; -1: it did not end
 * in time. */
static int wait_for_all(pid_t program)
{
	const uint64_t from_ns = pl_clock_mono_ns();
	int status = -1;

	for (;;) {
		int one;
		const pid_t pid = waitpid(-1, &one, WNOHANG);

		if (pid == program)
			status = one;
		if (pid < 0)
			return status;
		if (pid > 0)
			continue;
		if (pl_clock_mono_ns() - from_ns > LIMIT_NS) {
			(void)kill(-program, SIGKILL);
			return -1;
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
}

static void be_parent(const struct peers *p, int fd)
{
	struct ended e = { .status = -1 };
	pid_t program;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	program = fork();
	if (program == 0) {
		(void)setpgid(0, 0);
		be_program(p);
	}
	if (program > 0) {
		e.status = wait_for_all(program);
		e.ns = time_of_children();
	}
	(void)!write(fd, &e, sizeof(e));
	_exit(0);
}

/* Negative errno, said. */
static int run_program(const struct peers *p, struct ended *ret)
{
	int fds[2], r = 0;
	pid_t parent;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	parent = fork();
	if (parent == 0)
		be_parent(p, fds[1]);
	close(fds[1]);
	if (parent < 0 || read(fds[0], ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		r = -EIO;
	close(fds[0]);
	if (parent > 0)
		(void)waitpid(parent, NULL, 0);
	if (r == 0 &&
		(ret->status == -1 || !WIFEXITED(ret->status) || WEXITSTATUS(ret->status) != 0)) {
		pl_complain("benchmark flow: %s did not end well; it wrote into %s/log", p->args[0],
			p->dir);
		r = -EIO;
	}
	return r;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct peers *p = arg;
	struct ended e = { .ns = 0 };
	const int r = run_program(p, &e);

	(void)budget_ns;
	ret->items = p->packets;
	ret->ns = e.ns;
	return r;
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct peers *p = arg;

	return pl_bench_walk_pcap(
		p->capture, PCAP_TSTAMP_PRECISION_MICRO, p->packets, budget_ns, ret);
}

/* ---- programs ---- */

static bool is_there(const char *program)
{
	const char *path = getenv("PATH");
	char text[4096], *rest = text, *folder, file[4200];

	if (strchr(program, '/') != NULL)
		return true;
	snprintf(text, sizeof(text), "%s", path != NULL ? path : "");
	while ((folder = strsep(&rest, ":")) != NULL) {
		snprintf(file, sizeof(file), "%s/%s", folder, program);
		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

static int one(struct pl_bench_ctx *ctx, struct peers *p, const char *name, char *const *args)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "libpcap alone",
		.subject = subject,
		.ceiling = ceiling,
		.arg = p };
	char why[128];

	if (!pl_bench_wanted(ctx, name))
		return 0;
	if (!is_there(args[0])) {
		snprintf(why, sizeof(why), "%s is not installed (tools/deps peers)", args[0]);
		pl_bench_leave_out(ctx, name, why);
		return 0;
	}
	p->args = args;
	return pl_bench_compare(ctx, &c);
}

static int write_config(const struct peers *p, const char *path)
{
	char text[1024];
	const int n = snprintf(text, sizeof(text),
		"pcap_savefile: %s\ndaemonize: false\nplugins: nfprobe[x]\n"
		"nfprobe_receiver[x]: 127.0.0.1:%u\nnfprobe_version[x]: 10\n"
		"nfprobe_maxflows[x]: %d\n"
		"aggregate[x]: src_host,dst_host,src_port,dst_port,proto\n"
		"plugin_pipe_size: %llu\nplugin_buffer_size: 65536\n",
		p->capture, p->port, ROOM, (unsigned long long)p->packets * PIPE_BYTES);

	return pl_file_replace(path, text, (size_t)n, 0600);
}

static int compare_all(struct pl_bench_ctx *ctx, struct peers *p)
{
	char to[32], receiver[32], room[16], config[224];
	char self[PATH_MAX], tap[] = "tap", flows[] = "--flows", table[] = "--flow-table",
			     out[] = "--to", softflowd[] = "softflowd", d[] = "-d", file[] = "-r",
			     n[] = "-n", pid[] = "-p", pid_file[] = "softflowd.pid", c[] = "-c",
			     none[] = "none", m[] = "-m", v[] = "-v", version[] = "10",
			     pmacctd[] = "pmacctd", f[] = "-f";
	char *const ours[] = { self, tap, flows, table, room, out, to, p->capture, NULL };
	/* Without "-c none" softflowd 1.1.0 waits for somebody to connect to its control socket. */
	char *const soft[] = { softflowd, d, file, p->capture, n, receiver, pid, pid_file, c, none,
		m, room, v, version, NULL };
	char *const pm[] = { pmacctd, f, config, NULL };
	int r;

	snprintf(self, sizeof(self), "%s", pl_bench_program());
	snprintf(to, sizeof(to), PL_HAVE_IPFIX ? "ipfix://127.0.0.1:%u" : "udp://127.0.0.1:%u",
		p->port);
	snprintf(receiver, sizeof(receiver), "127.0.0.1:%u", p->port);
	snprintf(room, sizeof(room), "%d", ROOM);
	snprintf(config, sizeof(config), "%s/pmacctd.conf", p->dir);
	r = write_config(p, config);
	if (r == 0)
		r = one(ctx, p, "flow/capture", ours);
	if (r == 0)
		r = one(ctx, p, "flow/capture-softflowd", soft);
	if (r == 0)
		r = one(ctx, p, "flow/capture-pmacctd", pm);
	return r;
}

/* ---- the rest ---- */

static int open_sink(struct peers *p)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);

	p->sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->sink < 0 || bind(p->sink, (struct sockaddr *)&sa, len) < 0 ||
		getsockname(p->sink, (struct sockaddr *)&sa, &len) < 0)
		return -errno;
	p->port = ntohs(sa.sin_port);
	return 0;
}

static void clean_up(const struct peers *p)
{
	static const char *const files[] = { "x.pcap", "pmacctd.conf", "softflowd.pid", "log" };
	char path[256];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(p->dir);
	if (p->sink >= 0)
		close(p->sink);
}

int pl_bench_flow_peers(struct pl_bench_ctx *ctx)
{
	static struct peers p;
	const char *folder = getenv("TMPDIR");
	int r;

	p.sink = -1;
	p.packets = pl_bench_size_bytes(ctx, PACKETS_DEFAULT * RECORD_BYTES) / RECORD_BYTES;
	snprintf(p.dir, sizeof(p.dir), "%.150s/pathline-bench-XXXXXX",
		folder != NULL && *folder != '\0' ? folder : "/tmp");
	if (mkdtemp(p.dir) == NULL) {
		r = -errno;
		pl_complain("benchmark flow: cannot make %s: %s", p.dir, strerror(-r));
		return r;
	}
	snprintf(p.capture, sizeof(p.capture), "%s/x.pcap", p.dir);
	r = open_sink(&p);
	if (r == 0)
		r = make_capture(&p);
	if (r < 0)
		pl_complain("benchmark flow: cannot write %s: %s", p.capture, strerror(-r));
	else
		r = compare_all(ctx, &p);
	clean_up(&p);
	return r;
}
