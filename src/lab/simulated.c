/* SPDX-License-Identifier: BSD-2-Clause */
/* The process of a lab with a simulated network: it moves simulated time with the clock, and sends
 * the switches' reports to the lab's collector. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "dataplane/truth_log.h"
#include "lab/apply.h"
#include "lab/change.h"
#include "lab/control.h"
#include "lab/faults.h"
#include "lab/keeping.h"
#include "lab/plan.h"
#include "lab/simulation.h"
#include "lab/teller.h"
#include "lab/truth_account.h"

#define READY_MS 60000
/* 23 MB of truth records: one second at 16,000 packets/s through four switches,
 * and the drops of a longer time. */
#define EVENTS   65536
#define PATHS    16384
#define HOPS     65536
#define STEP_NS  UINT64_C(1000000)
/* Maximum time of simulating between two checks for requests. */
#define TURN_NS  UINT64_C(10000000)
/* Bytes of Ethernet, IPv4 and UDP headers in front of a report. */
#define HEADERS  (14 + 20 + 8)

struct simulated {
	struct pl_lab_keeper *k;
	struct pl_lab_topology topology; /* without the collector, which is not simulated */
	struct pl_lab_simulation *simulation;
	struct pl_dp_sim *sim;
	struct pl_lab_faults *faults;
	struct pl_dp_truth_log *truth;
	struct pl_lab_control control;
	uint64_t begin_mono_ns, begin_ns;
	uint64_t reports, refused; /* reports that could not be sent to the collector */
	size_t told;               /* number of recorded story steps */
	pid_t collector;           /* 0: none */
	int reporter, signals;     /* descriptors */
};

/* ---- reports and truth ---- */

static void collect(void *arg, const struct pl_dp_packet *pkt)
{
	struct simulated *p = arg;

	if (p->reporter < 0 || pkt->len < HEADERS)
		return;
	p->reports++;
	if (send(p->reporter, pkt->data + HEADERS, pkt->len - HEADERS, MSG_DONTWAIT) < 0)
		p->refused++;
}

static void true_path(void *arg, const struct pl_path *path, const struct pl_hop *hops)
{
	const struct simulated *p = arg;

	pl_dp_truth_log_path(p->truth, path, hops);
}

static void true_event(void *arg, const struct pl_event *event)
{
	const struct simulated *p = arg;

	pl_dp_truth_log_event(p->truth, event);
}

/* ---- the collector ---- */

/* Finds a free UDP port for the collector and connects the reports' socket to it. */
static int open_reporter(struct simulated *p, struct sockaddr_in *ret_to)
{
	socklen_t len = sizeof(*ret_to);
	int taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = 0;

	*ret_to = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	p->reporter = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (taken < 0 || p->reporter < 0 ||
		bind(taken, (struct sockaddr *)ret_to, sizeof(*ret_to)) < 0 ||
		getsockname(taken, (struct sockaddr *)ret_to, &len) < 0 ||
		connect(p->reporter, (struct sockaddr *)ret_to, sizeof(*ret_to)) < 0)
		r = -errno;
	if (taken >= 0)
		close(taken);
	return r;
}

static void be_collector(pid_t keeper)
{
	/* This process ends with the lab's process, even if that is killed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(126);
	pl_lab_reset_signals();
	if (pl_lab_redirect(PL_LAB_COLLECTOR) < 0)
		_exit(126);
	execlp("pathline", "pathline", "run", "-c", PL_LAB_COLLECTOR ".yaml", (char *)NULL);
	_exit(127);
}

static int start_collector(struct simulated *p, struct pl_diag *diag)
{
	const uint64_t until = pl_clock_mono_ns() + READY_MS * UINT64_C(1000000);
	const pid_t self = getpid();
	struct pl_buf text = { 0 };
	struct sockaddr_in to;
	char source[64];
	int r = open_reporter(p, &to);

	if (r < 0)
		return r;
	snprintf(source, sizeof(source), "udp://127.0.0.1:%u", ntohs(to.sin_port));
	pl_lab_collector_text(source, "127.0.0.1:0", &text);
	r = text.failed
		    ? -ENOMEM
		    : pl_file_replace(PL_LAB_COLLECTOR ".yaml", text.data, strlen(text.data), 0600);
	pl_buf_done(&text);
	if (r < 0)
		return r;
	p->collector = fork();
	if (p->collector == 0)
		be_collector(self);
	if (p->collector < 0) {
		p->collector = 0;
		return -errno;
	}
	while (!pl_lab_listens(PL_LAB_COLLECTOR)) {
		if (pl_lab_starter_is_gone(p->k))
			return -ECANCELED;
		if (waitpid(p->collector, NULL, WNOHANG) == p->collector) {
			p->collector = 0;
			return pl_lab_say_ended(PL_LAB_COLLECTOR, "pathline run", diag);
		}
		if (pl_clock_mono_ns() > until) {
			pl_diag_set(diag, "the collector does not listen within a minute");
			return -ETIMEDOUT;
		}
		(void)poll(NULL, 0, 5);
	}
	return 0;
}

static void end_collector(struct simulated *p)
{
	for (unsigned int i = 0; p->collector > 0; i++) {
		(void)kill(p->collector, i < 100 ? SIGTERM : SIGKILL);
		if (waitpid(p->collector, NULL, i < 100 ? WNOHANG : 0) == p->collector)
			p->collector = 0;
		else
			(void)poll(NULL, 0, 20);
	}
}

/* ---- asked ---- */

static void tell_truth(void *arg, struct pl_lab_truth_account *ret)
{
	const struct simulated *p = arg;

	pl_lab_simulation_truth(p->simulation, &p->topology, ret);
}

static int impair(
	void *arg, const char *link, const char *const *words, unsigned int n, struct pl_diag *diag)
{
	const struct simulated *p = arg;

	return pl_lab_simulation_impair(p->simulation, &p->topology, link, words, n, diag);
}

/* Undoes a change that failed midway: sets the network as in the lab's file. */
static void undo(struct simulated *p, bool costs)
{
	struct pl_diag diag = { .text = "" };
	struct pl_buf out = { 0 };
	int r = costs ? pl_lab_simulation_reroute(p->simulation, &p->topology, &diag) : 0;

	if (r == 0)
		r = pl_lab_simulation_become(p->simulation, &p->topology, &out, &diag);
	if (r < 0)
		dprintf(2, "undoing: %s\n", diag.text[0] != '\0' ? diag.text : strerrordesc_np(-r));
	pl_buf_done(&out);
}

/* Applies costs and qualities of links; a simulated lab runs no commands. */
static int apply(void *arg, const char *const *words, unsigned int n, struct pl_buf *out,
	struct pl_diag *diag)
{
	struct simulated *p = arg;
	struct pl_lab_topology *want = NULL;
	bool costs = false, begun;
	int r = n == 1 ? pl_lab_apply_read(&want, p->topology.name, words[0], false, diag)
		       : -EINVAL;

	if (r == 0)
		r = pl_lab_change_check(&p->topology, want, true, diag);
	for (unsigned int i = 0; r == 0 && i < want->n_links; i++)
		costs |= want->links[i].cost != p->topology.links[i].cost;
	begun = r == 0;
	if (costs)
		r = pl_lab_simulation_reroute(p->simulation, want, diag);
	if (costs && r == 0)
		pl_lab_change_tell(out, "routes", "set", "all switches");
	if (r == 0)
		r = pl_lab_simulation_become(p->simulation, want, out, diag);
	if (r == 0)
		r = pl_lab_apply_note(want);
	if (r == 0) {
		const struct pl_lab_topology before = p->topology;

		p->topology = *want;
		*want = before;
	} else if (begun) {
		undo(p, costs);
	}
	if (want != NULL)
		pl_lab_topology_done(want);
	free(want);
	return r;
}

static int read_host(const struct simulated *p, const char *word, unsigned int *ret)
{
	uint64_t v;

	if (pl_parse_u64(word, &v) < 0 || v >= p->topology.n_nodes ||
		p->topology.nodes[v].kind != PL_LAB_HOST)
		return -EINVAL;
	*ret = (unsigned int)v;
	return 0;
}

/* Starts traffic. Words: KIND RATE SIZE DURATION ON OFF FROM… TO, all numbers. */
static int traffic(void *arg, const char *const *words, unsigned int n, struct pl_buf *out,
	struct pl_diag *diag)
{
	struct simulated *p = arg;
	const uint64_t now = pl_dp_sim_now(p->sim);
	struct pl_lab_traffic t = { .n_from = 0 };
	uint64_t v[6] = { 0 };
	uint32_t first;
	int r = n < 8 || n > 7 + PL_LAB_SENDERS_MAX ? -EINVAL : 0;

	for (unsigned int i = 0; i < 6 && r == 0; i++)
		r = pl_parse_u64(words[i], &v[i]);
	for (unsigned int i = 6; i < n && r == 0; i++)
		r = read_host(p, words[i], i + 1 == n ? &t.to : &t.from[t.n_from++]);
	if (r < 0 || v[0] > PL_LAB_DNS || v[1] < 1000 || v[2] < 20 || v[2] > 65000 || v[3] == 0 ||
		v[3] > PL_LAB_FOR_EVER_NS || v[4] == 0 || v[4] > PL_LAB_FOR_EVER_NS ||
		v[5] > PL_LAB_FOR_EVER_NS) {
		pl_diag_set(diag, "no such traffic: only hosts of the lab send and receive");
		return -EINVAL;
	}
	t.kind = (enum pl_lab_traffic_kind)v[0];
	t.rate_bps = v[1];
	t.size = (uint32_t)v[2];
	t.on_ns = v[4];
	t.off_ns = v[5];
	r = pl_lab_simulation_send(p->simulation, &p->topology, &t, now, now + v[3], &first, diag);
	if (r == 0)
		pl_buf_printf(out, "%u %" PRIu64 "\n", first, now + v[3]);
	return r;
}

static int flows(void *arg, const char *const *words, unsigned int n, struct pl_buf *out,
	struct pl_diag *diag)
{
	const struct simulated *p = arg;
	uint64_t first, count;

	if (n != 2 || pl_parse_u64(words[0], &first) < 0 || pl_parse_u64(words[1], &count) < 0 ||
		first == 0 || count > pl_dp_sim_flows(p->sim) ||
		first > pl_dp_sim_flows(p->sim) + 1 - count) {
		pl_diag_set(diag, "there are no such flows");
		return -EINVAL;
	}
	pl_buf_printf(out, "%llu\n", (unsigned long long)pl_dp_sim_now(p->sim));
	for (uint64_t f = first; f < first + count; f++) {
		const struct pl_dp_flow_account *b = pl_dp_sim_flow_account(p->sim, (uint32_t)f);

		pl_buf_printf(out, "%llu %llu %llu %llu %llu\n", (unsigned long long)b->sent,
			(unsigned long long)b->sent_bytes, (unsigned long long)b->delivered,
			(unsigned long long)b->delivered_bytes,
			(unsigned long long)(b->sent + b->copied - b->delivered - b->dropped -
					     b->lost));
	}
	return 0;
}

/* ---- its life ---- */

static int build(struct simulated *p, struct pl_diag *diag)
{
	struct pl_lab_simulation_cfg cfg = { .seed = 1,
		.start_ns = pl_clock_real_ns(),
		.duration_ns = PL_LAB_FOR_EVER_NS,
		.truth = { true_path, true_event, p },
		.collect = collect,
		.arg = p };
	const struct pl_lab_control_ops ops = { .truth = tell_truth,
		.impair = impair,
		.apply = apply,
		.traffic = traffic,
		.flows = flows,
		.arg = p };
	const char *text = p->k->t->text;
	int r = pl_lab_topology_parse(&p->topology, p->k->t->name, text, strlen(text), diag);

	if (r == 0)
		r = pl_dp_truth_log_new(&p->truth, "truth", EVENTS, PATHS, HOPS, diag);
	if (r == 0 && p->topology.telemetry == PL_LAB_INT)
		r = start_collector(p, diag);
	if (r < 0)
		return r;
	p->begin_mono_ns = pl_clock_mono_ns();
	p->begin_ns = cfg.start_ns = pl_clock_real_ns();
	r = pl_lab_simulation_new(&p->simulation, &p->topology, &cfg, diag);
	if (r < 0)
		return r;
	p->sim = pl_lab_simulation_sim(p->simulation);
	r = pl_lab_faults_new(&p->faults, p->simulation, &p->topology, NULL, 0, diag);
	return r == 0 ? pl_lab_control_open(&p->control, &ops) : r;
}

static void note_collector_end(struct simulated *p, int status)
{
	char line[128];
	int n = snprintf(line, sizeof(line),
		PL_LAB_COLLECTOR ": 'pathline run' ended with %s %d, output in " PL_LAB_COLLECTOR
				 ".log\n",
		WIFSIGNALED(status) ? "signal" : "exit code",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));

	p->collector = 0;
	if (pl_file_replace("ended", line, (size_t)n, 0600) < 0)
		dprintf(2, "%s", line);
}

/* Returns false when the lab is to end. */
static bool take_signal(struct simulated *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	if (read(p->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == p->collector)
			note_collector_end(p, status);
	}
	return info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT;
}

static void tell_story(struct simulated *p, uint64_t since_ns)
{
	const struct pl_lab_story *s = &p->topology.story;

	while (p->told < s->n && s->steps[p->told].at_ns <= since_ns)
		pl_lab_story_note(&s->steps[p->told++], "", "");
}

/* Moves simulated time up to the clock, for TURN_NS at most: on a slow machine simulated time falls
 * behind, and requests are still answered. Returns true when it has caught up. */
static bool move(struct simulated *p)
{
	const uint64_t began = pl_clock_mono_ns();
	const uint64_t until = p->begin_ns + (began - p->begin_mono_ns);

	while (pl_dp_sim_now(p->sim) < until && pl_clock_mono_ns() - began < TURN_NS) {
		const uint64_t next = pl_dp_sim_now(p->sim) + STEP_NS;

		pl_dp_sim_run(p->sim, next < until ? next : until);
	}
	tell_story(p, pl_dp_sim_now(p->sim) - p->begin_ns);
	return pl_dp_sim_now(p->sim) == until;
}

static void keep(struct simulated *p)
{
	struct pollfd fds[2 + PL_LAB_CLIENTS_MAX];
	bool go_on = true;

	while (go_on) {
		const struct timespec ts = pl_clock_timespec(move(p) ? STEP_NS : 0);

		fds[0] = (struct pollfd){ .fd = p->signals, .events = POLLIN };
		pl_lab_control_wait(&p->control, fds + 1);
		if (ppoll(fds, 2 + PL_LAB_CLIENTS_MAX, &ts, NULL) <= 0)
			continue;
		if (fds[0].revents != 0)
			go_on = take_signal(p);
		pl_lab_control_serve(&p->control, fds + 1);
	}
	dprintf(2, "reports: %llu, of which %llu were not sent\n", (unsigned long long)p->reports,
		(unsigned long long)p->refused);
}

static int run(struct simulated *p)
{
	struct pl_diag diag = { .text = "" };
	char go;
	int r;

	if (read(p->k->go, &go, 1) != 1)
		return -ECANCELED;
	r = build(p, &diag);
	r = pl_lab_tell_verdict(p->k, r, &diag);
	if (r == 0)
		keep(p);
	return r;
}

int pl_lab_keep_simulated(struct pl_lab_keeper *k)
{
	struct simulated *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL) {
		pl_lab_say_unable(k, -ENOMEM);
		pl_lab_state_sweep(k->state);
		return 1;
	}
	p->k = k;
	p->reporter = -1;
	pl_lab_control_init(&p->control);
	r = pl_lab_keep_begin(k, &p->signals);
	if (r == 0)
		r = run(p);
	end_collector(p);
	pl_lab_control_close(&p->control);
	pl_lab_faults_free(p->faults);
	pl_lab_simulation_free(p->simulation);
	pl_dp_truth_log_free(p->truth);
	pl_lab_topology_done(&p->topology);
	if (p->reporter >= 0)
		close(p->reporter);
	free(p);
	if (chdir("/") < 0)
		dprintf(2, "/: %s\n", strerrordesc_np(errno));
	pl_lab_state_sweep(k->state);
	return r == 0 ? 0 : 1;
}
