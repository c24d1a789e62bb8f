/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software switch on AF_XDP over a veth pair, its own process: frames of 128 bytes come in by
 * its port, are routed, and go out by the same one. Beside it, on the same ports, a loop that only
 * receives and transmits (the ceiling), and the kernel's own forwarding.
 *
 * Frames that came back are counted, by XDP at the sender's end. Rates are per second of the
 * processor time of whoever forwards and of the receiver's NAPI, both on the first processor; the
 * sender has the second and overruns them.
 *
 * transit is the case that is held against switches that others publish figures of, which count
 * packets by the clock: frames come with INT, and what counts is the switch's processor time. The
 * receiver's NAPI runs where it does when nobody moves it, on the sender's processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/file.h"
#include "netio/xdp.h"
#include "tests/bench/afxdp.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/int_frame.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define FRAME      128
#define WARM_UP_NS UINT64_C(150000000)
#define PAUSE_NS   10000000
#define START_NS   UINT64_C(20000000000)
#define NEXT_HOP   "02:00:00:00:00:01"

struct switch_wire {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	struct pl_bpf_bench *skel;
	struct pl_xdp *count; /* at the sender */
	struct pl_batch batch;
	uint8_t frame[FRAME];
	uint64_t before, came; /* of the loop's run */
	bool alone;            /* NAPI of the receiver is on the sender's processor */
	char dir[64];
	pid_t child;
};

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* ---- the loop ---- */

static int take_loop(struct pl_afxdp_bench *wire, void *receiver)
{
	struct switch_wire *b = (struct switch_wire *)wire;
	struct pl_port *port = receiver;
	int n = pl_port_recv(port, &b->batch, 10, NULL);

	/* The carrier came: news for a daemon. */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n;
	(void)pl_port_send(port, &b->batch, NULL);
	pl_port_release(port, &b->batch);
	return n;
}

static void mark_loop(struct pl_afxdp_bench *wire, void *receiver, bool end)
{
	struct switch_wire *b = (struct switch_wire *)wire;

	(void)receiver;
	if (end)
		b->came = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) - b->before;
	b->before = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames));
}

static int loop(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct switch_wire *b = arg;
	int r = pl_afxdp_measure_port(&b->wire, PL_AFXDP_URI, take_loop, budget_ns, ret);

	/* What it took may have been lost on the way back. */
	ret->items = b->came;
	return r;
}

/* ---- the switch ---- */

/* 256 prefixes of which the packets' own is one. telemetry: "", or a table behind the queue. */
static int write_program(const char *path, const char *telemetry)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r;

	if (f == NULL)
		return -ENOMEM;
	fprintf(f, "ports: [ { number: 1, uri: \"" PL_AFXDP_URI "\" } ]\n"
		   "tables:\n  - name: routes\n    key: [ ip.dst prefix ]\n    entries:\n");
	for (unsigned int i = 0; i < 256; i++)
		fprintf(f, "      - ip.dst=10.%u.0.0/%u -> route 1 " NEXT_HOP "\n", i,
			16 + i % 3 * 4);
	fputs(telemetry, f);
	r = fclose(f) == 0 ? pl_file_replace(path, text, len, 0600) : -ENOMEM;
	free(text);
	return r;
}

_Noreturn static void be_switch(pid_t parent, const char *config, const char *log)
{
	char program[] = "pathline", word[] = "switch", c[] = "-c", path[96];
	char *const args[] = { program, word, c, path, NULL };
	const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	snprintf(path, sizeof(path), "%s", config);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	(void)pl_cpu_pin(0);
	if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0)
		(void)execvp(pl_bench_program(), args);
	_exit(127);
}

/* Whether it says that it forwards; the last line that it said. */
static bool runs(const char *log, char last[256])
{
	FILE *f = fopen(log, "re");
	bool yes = false;

	while (f != NULL && fgets(last, 256, f) != NULL)
		yes |= strstr(last, "forwards between") != NULL;
	if (f != NULL)
		fclose(f);
	return yes;
}

static int start_switch(struct switch_wire *b, const char *telemetry)
{
	const uint64_t until = pl_clock_mono_ns() + START_NS;
	const pid_t parent = getpid();
	char config[96], log[96], last[256] = "it said nothing";
	int r;

	snprintf(config, sizeof(config), "%s/switch.yaml", b->dir);
	snprintf(log, sizeof(log), "%s/switch.log", b->dir);
	r = write_program(config, telemetry);
	if (r < 0)
		return r;
	/* The one of the run before says that it forwards. */
	(void)unlink(log);
	b->child = fork();
	if (b->child == 0)
		be_switch(parent, config, log);
	if (b->child < 0)
		return -EAGAIN;
	while (!runs(log, last)) {
		if (waitpid(b->child, NULL, WNOHANG) != 0 || pl_clock_mono_ns() > until) {
			pl_complain("benchmark switch-wire: the switch did not start: %s", last);
			return -ENOENT;
		}
		pause_a_little();
	}
	return 0;
}

static void end_switch(struct switch_wire *b)
{
	if (b->child <= 0)
		return;
	(void)kill(b->child, SIGTERM);
	while (waitpid(b->child, NULL, 0) < 0 && errno == EINTR)
		;
	b->child = 0;
}

/* Processor time of the switch's only busy thread. */
static uint64_t switch_ns(const struct switch_wire *b)
{
	char path[64];
	unsigned long long ns = 0;
	FILE *f;

	if (b->child <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)b->child);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

/* ---- frames past somebody else ---- */

static int make_live(struct switch_wire *b, struct pl_live **ret)
{
	struct pl_live_cfg cfg = b->wire.live;
	struct pl_diag diag = { .text = "" };
	int r = pl_wire_enter(&b->wire.wire, PL_WIRE_SENDER);

	cfg.ifindex = b->wire.wire.ifindex[PL_WIRE_SENDER];
	if (r == 0)
		r = pl_live_new(ret, &cfg, &diag);
	if (r < 0)
		pl_complain("benchmark switch-wire: %s",
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	(void)pl_wire_enter(&b->wire.wire, PL_WIRE_RECEIVER);
	return r;
}

static void wait_until(uint64_t ns)
{
	while (pl_clock_mono_ns() < ns)
		pause_a_little();
}

/* The time that counts. */
static uint64_t spent_ns(const struct switch_wire *b)
{
	return switch_ns(b) + (b->alone ? 0 : pl_wire_napi_cpu_ns());
}

/* Frames that come back while another process, or the kernel, forwards. */
static int past(struct switch_wire *b, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct pl_live *live = NULL;
	uint64_t spent, came, start;
	int r = make_live(b, &live), stopped;

	if (r == 0 && !b->alone)
		r = pl_wire_threaded_napi(&b->wire.wire, true, 0);
	if (r == 0)
		r = pl_live_start(live, 1, 0);
	if (r < 0) {
		pl_live_free(live);
		return r;
	}
	start = pl_clock_mono_ns() + WARM_UP_NS;
	wait_until(start);
	spent = spent_ns(b);
	came = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames));
	wait_until(start + budget_ns);
	/* A run of a moment, on a busy machine. */
	while (pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) == came &&
		pl_clock_mono_ns() < start + budget_ns + START_NS)
		pause_a_little();
	ret->items = pl_wire_counted(bpf_map__fd(b->skel->maps.pl_bench_frames)) - came;
	ret->ns = spent_ns(b) - spent;
	stopped = pl_live_stop(live);
	pl_live_free(live);
	if (!b->alone)
		(void)pl_wire_threaded_napi(&b->wire.wire, false, 0);
	if (stopped == 0 && ret->items == 0) {
		pl_complain("benchmark switch-wire: no frame came back");
		return -ENODATA;
	}
	return stopped;
}

static int by_switch_with(struct switch_wire *b, const char *telemetry, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	int r = start_switch(b, telemetry);

	if (r == 0)
		r = past(b, budget_ns, ret);
	end_switch(b);
	return r;
}

static int by_switch(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return by_switch_with(arg, "", budget_ns, ret);
}

/* INT 2.1 is put into every frame: what a transit does, and the header. */
static int by_int(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return by_switch_with(arg,
		"  - name: telemetry\n    stage: egress\n"
		"    miss: int_source version=2.1 instructions=0xfd00\n",
		budget_ns, ret);
}

static int by_transit(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return by_switch_with(arg,
		"  - name: telemetry\n    stage: egress\n    miss: int_transit\n", budget_ns, ret);
}

/* ---- the kernel ---- */

static int write_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

/* The next hop's MAC address, for good. */
static int know_next_hop(void)
{
	struct arpreq neighbour = { .arp_flags = ATF_COM | ATF_PERM,
		.arp_ha = { .sa_family = ARPHRD_ETHER, .sa_data = { 2, 0, 0, 0, 0, 1 } },
		.arp_dev = PL_WIRE_RECEIVER_NAME };
	struct sockaddr_in *n = (struct sockaddr_in *)(void *)&neighbour.arp_pa;
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = 0;

	if (s < 0)
		return -errno;
	*n = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x0a000002) }; /* 10.0.0.2, as pl_wire_frame has it */
	if (ioctl(s, SIOCSARP, &neighbour) < 0)
		r = -errno;
	close(s);
	return r;
}

static int set_up_kernel(void)
{
	int r = pl_wire_address(PL_WIRE_RECEIVER_NAME, "10.0.0.254");

	if (r == 0)
		r = know_next_hop();
	if (r == 0)
		r = write_text("/proc/sys/net/ipv4/ip_forward", "1");
	/* In by the interface that it goes out by: neither a redirect for each. */
	if (r == 0)
		r = write_text("/proc/sys/net/ipv4/conf/all/send_redirects", "0");
	if (r == 0)
		r = write_text(
			"/proc/sys/net/ipv4/conf/" PL_WIRE_RECEIVER_NAME "/send_redirects", "0");
	return r;
}

static int by_kernel(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct switch_wire *b = arg;
	struct pl_diag diag = { .text = "" };
	struct pl_xdp *xdp = NULL;
	int r = set_up_kernel();

	/* Without an XDP program at their peer, frames of the generator do not arrive. */
	if (r == 0)
		r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME,
			bpf_program__fd(b->skel->progs.pl_bench_pass_only), PL_XDP_NATIVE, NULL,
			&diag);
	if (r < 0)
		pl_complain("benchmark switch-wire: %s",
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	else
		r = past(b, budget_ns, ret);
	pl_xdp_detach(xdp);
	return r;
}

/* ---- the benchmark ---- */

/* The receiver's own MAC address, or its kernel would not take the frames for its own. */
static int set_frame(struct switch_wire *b, bool with_int)
{
	static const struct pl_live_field field = {
		.offset = FRAME - 8, .len = 4, .kind = PL_LIVE_COUNT
	};
	static const uint8_t zero_rows[1][PL_LIVE_ROW_BYTES];
	struct ifreq request = { .ifr_name = PL_WIRE_RECEIVER_NAME };
	uint8_t payload[FRAME] = { 0 };
	const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = pl_wire_frame(b->frame, sizeof(b->frame), payload,
		FRAME - 42 - (with_int ? PL_BENCH_INT_BYTES : 0));

	if (s < 0 || ioctl(s, SIOCGIFHWADDR, &request) < 0)
		r = -errno;
	if (s >= 0)
		close(s);
	memcpy(b->frame, request.ifr_hwaddr.sa_data, 6);
	if (r >= 0 && with_int)
		r = pl_bench_instrument(b->frame, FRAME - PL_BENCH_INT_BYTES);
	b->wire.mark = mark_loop;
	b->wire.send_by = PL_AFXDP_BY_RING;
	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = FRAME,
		.restore_bytes = 48,
		.fields = &field,
		.nfields = 1,
		.rows = zero_rows,
		.nrows = 1 };
	return r < 0 ? r : 0;
}

static int count_at_sender(struct switch_wire *b)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_wire_enter(&b->wire.wire, PL_WIRE_SENDER);

	if (r == 0)
		r = pl_xdp_attach(&b->count, PL_WIRE_SENDER_NAME,
			bpf_program__fd(b->skel->progs.pl_bench_lines), PL_XDP_NATIVE, NULL, &diag);
	(void)pl_wire_enter(&b->wire.wire, PL_WIRE_RECEIVER);
	if (r < 0)
		pl_complain("benchmark switch-wire: %s",
			diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r;
}

static const struct {
	const char *name;
	pl_bench_fn *subject;
	bool transit;
} cases[] = {
	{ "switch-wire/route", by_switch, false },
	{ "switch-wire/int", by_int, false },
	{ "switch-wire/transit", by_transit, true },
	{ "switch-wire/kernel", by_kernel, false },
};

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct switch_wire *b = (struct switch_wire *)wire;
	const struct pl_bench_case c = { .name = cases[i].name,
		.ceiling_name = cases[i].transit ? NULL : "receive and transmit by AF_XDP",
		.subject = cases[i].subject,
		.ceiling = cases[i].transit ? NULL : loop,
		.arg = b,
		.crosses_cores = true };
	int r = set_frame(b, cases[i].transit);

	b->alone = cases[i].transit;
	if (r == 0 && b->count == NULL)
		r = count_at_sender(b);
	return r == 0 ? pl_bench_compare(ctx, &c) : r;
}

static void remove_files(struct switch_wire *b)
{
	static const char *const names[] = { "switch.yaml", "switch.log" };
	char path[96];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", b->dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(b->dir);
}

static int run(struct pl_bench_ctx *ctx)
{
	struct switch_wire *b = calloc(1, sizeof(*b));
	int r = 0;

	if (b == NULL)
		return -ENOMEM;
	snprintf(b->dir, sizeof(b->dir), "/tmp/pathline-bench-XXXXXX");
	if (mkdtemp(b->dir) == NULL)
		r = -errno;
	if (r == 0) {
		b->skel = pl_bpf_bench__open_and_load();
		if (b->skel == NULL)
			r = -EPERM;
	}
	if (r < 0)
		pl_complain("benchmark switch-wire: %s", strerror(-r));
	else
		r = pl_afxdp_run(
			ctx, &b->wire, "switch-wire", one, sizeof(cases) / sizeof(cases[0]));
	pl_xdp_detach(b->count);
	pl_bpf_bench__destroy(b->skel);
	remove_files(b);
	free(b);
	return r;
}

const struct pl_bench pl_bench_switch_wire = {
	.name = "switch-wire",
	.summary =
		"the switch on AF_XDP over a veth pair, INT too, and the kernel's forwarding, against a loop (root)",
	.run = run,
};
