/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline simulate: a network in simulated time, its reports, and the truth about them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/gen_send.h"
#include "ask/mark_truth.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/simulate.h"
#include "lab/faults.h"
#include "lab/simulation.h"
#include "lab/truth_account.h"
#include "lab/truth_history.h"
#include "mark/guard.h"
#include "netio/port.h"
#include "record/json.h"

/* The beginning of simulated time when it does not follow the clock, as in captures of `gen`. */
#define START_NS        (UINT64_C(1700000000) * 1000000000)
#define STEP_NS         UINT64_C(100000)
#define DURATION_MAX_NS (UINT64_C(1000000) * 1000000000)
#define STEPS           100u /* one after the other */
/* After the hosts have stopped, packets under way still reach their ends. */
#define END_NS          UINT64_C(1000000000)

static struct {
	uint64_t duration_ns, seed, flows, bytes;
	double rate;
	const char *file, *truth, *history;
	struct pl_opt_list faults;
	const char *marking, *form;
	struct pl_opt_list bits;
	uint64_t period_ns, clock_error_ns, delay_ns, deviation_ns;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_DURATION, 0, "duration", &args.duration_ns, "TIME",
			"simulated time for which hosts send (default 10s)", NULL },
		{ PL_OPT_RATE, 0, "rate", &args.rate, "N",
			"packets per simulated second, of all flows together (default 20k)", NULL },
		{ PL_OPT_U64, 0, "flows", &args.flows, "N",
			"UDP flows between hosts, with random gaps between packets (default 64; 0: only the story's)",
			NULL },
		{ PL_OPT_SIZE, 0, "size", &args.bytes, "SIZE",
			"length of the hosts' frames (default 200)", NULL },
		{ PL_OPT_U64, 0, "seed", &args.seed, "N",
			"the same seed gives the same bytes (default 1)", NULL },
		{ PL_OPT_STRING, 'w', "write", &args.file, "FILE",
			"write the reports into a capture file", NULL },
		{ PL_OPT_STRING, 0, "truth", &args.truth, "FILE",
			"write what happened to each packet, as JSON lines", NULL },
		{ PL_OPT_STRING, 0, "truth-history", &args.history, "FOLDER",
			"write what happened as a history, which pathline query reads together "
			"with the reports",
			NULL },
		{ PL_OPT_LIST, 0, "impair", &args.faults, "LINK:KEY=VALUE[@TIME]",
			"a fault of a link (A-B, or A>B for one direction), such as leaf1-spine1:loss=0.02@2s; keys as for pathline lab impair; may be repeated",
			NULL },
		{ PL_OPT_HEADING, 0, "Alternate marking", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "marking", &args.marking, "METHOD",
			"switches mark the packets of hosts, and every link is metered: print loss "
			"and delay by marking, block by block, beside the truth",
			pl_mark_methods },
		{ PL_OPT_LIST, 0, "bit", &args.bits, "BIT",
			"where the mark is: dscp:N, tos:N, tclass:N, ecn:N or ipv4-reserved, which INT between switches "
			"leaves as it is; twice for double marking (default ipv4-reserved, then dscp:0)",
			NULL },
		{ PL_OPT_DURATION, 0, "period", &args.period_ns, "TIME",
			"duration of a block (default 1s)", NULL },
		{ PL_OPT_DURATION, 0, "clock-error", &args.clock_error_ns, "TIME",
			"largest difference between the clocks of two points (default 0s: clocks "
			"are exact)",
			NULL },
		{ PL_OPT_DURATION, 0, "delay", &args.delay_ns, "TIME",
			"mean delay from the marker to the last meter (default 50ms)", NULL },
		{ PL_OPT_DURATION, 0, "deviation", &args.deviation_ns, "TIME",
			"standard deviation of that delay (default 10ms)", NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"form of loss and delay by marking (default table)", pl_out_forms },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* A report that the collector got, until it is sent on. */
struct report {
	struct report *next;
	struct pl_packet packet;
	uint8_t bytes[];
};

struct run {
	struct pl_lab_simulation *simulation;
	struct pl_dp_sim *sim;
	uint64_t end_ns, reports;
	bool datagrams; /* without Ethernet, IP and UDP headers */
	struct report *first, **last, *lent;
	struct pl_buf text;
	FILE *truth;
	struct pl_lab_truth_history *history;
	struct pl_lab_faults *faults;
	struct pl_lab_metering *marking;
	struct pl_mark_truth_rows rows;
	int failed;     /* first error of a callback, negative errno */
	bool usage;     /* the command line is wrong */
	bool unwritten; /* not all rows were */
};

/* ---- from the simulation ---- */

static void collect(void *arg, const struct pl_dp_packet *pkt)
{
	/* Reports of the data plane: Ethernet, IPv4 without options, UDP. */
	struct run *run = arg;
	const uint32_t skip = run->datagrams ? 14 + 20 + 8 : 0;
	struct report *r;

	if (pkt->len < skip)
		return;
	r = malloc(sizeof(*r) + pkt->len - skip);
	if (r == NULL) {
		run->failed = -ENOMEM;
		return;
	}
	memcpy(r->bytes, pkt->data + skip, pkt->len - skip);
	r->next = NULL;
	r->packet = (struct pl_packet){ .data = r->bytes,
		.len = pkt->len - skip,
		.wire_len = pkt->len - skip,
		.ts_ns = pl_dp_sim_now(run->sim),
		.link = run->datagrams ? PL_LINK_UDP : PL_LINK_ETHERNET };
	*run->last = r;
	run->last = &r->next;
	run->reports++;
}

static void write_truth(struct run *run)
{
	pl_buf_chr(&run->text, '\n');
	if (run->text.failed)
		run->failed = -ENOMEM;
	else if (fwrite(run->text.data, 1, run->text.len, run->truth) != run->text.len)
		run->failed = -errno;
	pl_buf_reset(&run->text);
}

static void true_path(void *arg, const struct pl_path *path, const struct pl_hop *hops)
{
	struct run *run = arg;

	if (run->history != NULL)
		pl_lab_truth_history_path(run->history, path, hops);
	if (run->marking != NULL)
		pl_lab_metering_path(run->marking, path, hops);
	if (run->truth == NULL)
		return;
	pl_path_json(&run->text, path, hops, path->hop_count);
	write_truth(run);
}

static void true_event(void *arg, const struct pl_event *event)
{
	struct run *run = arg;

	if (run->history != NULL)
		pl_lab_truth_history_event(run->history, event);
	if (run->truth == NULL)
		return;
	pl_event_json(&run->text, event);
	write_truth(run);
}

static void block(void *arg, const struct pl_mark128 *record)
{
	struct run *run = arg;

	if (run->history != NULL)
		pl_lab_truth_history_mark(run->history, record);
}

/* ---- as a source of packets to send ---- */

static void free_list(struct report *r)
{
	for (struct report *next; r != NULL; r = next) {
		next = r->next;
		free(r);
	}
}

static uint64_t due_ns(const void *gen)
{
	const struct run *run = gen;

	if (run->first != NULL)
		return run->first->packet.ts_ns;
	return pl_dp_sim_now(run->sim) < run->end_ns ? pl_dp_sim_now(run->sim) + STEP_NS
						     : UINT64_MAX;
}

/* Simulated time is never skipped: late packets are sent at once. */
static void skip_to(void *gen, uint64_t now_ns)
{
	(void)gen;
	(void)now_ns;
}

static int next(void *gen, uint64_t until_ns, struct pl_batch *ret)
{
	struct run *run = gen;

	/* The batch before is done with. */
	free_list(run->lent);
	run->lent = NULL;
	/* Runs only short steps, so that a signal can end it even if there are no reports. */
	for (unsigned int i = 0;
		i < STEPS && run->first == NULL && pl_dp_sim_now(run->sim) + STEP_NS <= until_ns &&
		pl_dp_sim_now(run->sim) < run->end_ns && run->failed == 0;
		i++)
		pl_dp_sim_run(run->sim, pl_dp_sim_now(run->sim) + STEP_NS);
	if (run->failed != 0)
		return run->failed;
	for (ret->n = 0; ret->n < PL_BATCH_MAX && run->first != NULL; ret->n++) {
		struct report *r = run->first;

		run->first = r->next;
		if (run->first == NULL)
			run->last = &run->first;
		r->next = run->lent;
		run->lent = r;
		ret->pkts[ret->n] = r->packet;
	}
	if (ret->n == 0)
		return pl_dp_sim_now(run->sim) < run->end_ns ? 0 : -ENODATA;
	return 1;
}

/* ---- the command ---- */

static void print_account(const struct run *run, const struct pl_gen_account *acc)
{
	const struct pl_dp_sim_account *b = pl_dp_sim_account(run->sim);
	uint64_t lost = b->dropped[PL_DP_DROP_LINK], dropped = 0;

	for (unsigned int i = 0; i < PL_DP_DROP_MAX; i++)
		dropped += i != PL_DP_DROP_LINK ? b->dropped[i] : 0;
	fprintf(stderr,
		"%.3f s simulated in %.3f s: packets sent: %llu; dropped by nodes: %llu; lost on links: "
		"%llu; reports: %llu\n",
		(double)args.duration_ns / 1e9, (double)(acc->end_ns - acc->begin_ns) / 1e9,
		(unsigned long long)b->sent, (unsigned long long)dropped, (unsigned long long)lost,
		(unsigned long long)run->reports);
}

static int open_truth(struct run *run, struct pl_diag *diag)
{
	int r = 0;

	if (args.history != NULL)
		r = pl_lab_truth_history_new(&run->history, args.history, diag);
	if (r < 0 || args.truth == NULL)
		return r;
	run->truth = strcmp(args.truth, "-") == 0 ? stdout : fopen(args.truth, "we");
	if (run->truth != NULL)
		return 0;
	r = -errno;
	return pl_diag_fail(diag, r, "%s: %s", args.truth, strerror(-r));
}

static int close_truth(struct run *run)
{
	FILE *f = run->truth;

	run->truth = NULL;
	if (f == NULL)
		return 0;
	return (f == stdout ? fflush(f) : fclose(f)) == 0 ? 0 : -errno;
}

/* ---- marking ---- */

static bool is_dscp(const struct pl_mark_bit *bit)
{
	return bit->carrier == PL_MARK_AT_TOS && (bit->mask & 0xfc) != 0;
}

static int open_marking(
	struct run *run, const struct pl_lab_topology *t, uint64_t start_ns, struct pl_diag *diag)
{
	static const char *const usual[] = { "ipv4-reserved" };
	const struct pl_mark_spread spread = { args.clock_error_ns, args.delay_ns,
		args.deviation_ns };
	struct pl_lab_metering_cfg cfg = { .period_ns = args.period_ns,
		.clock_ns = args.clock_error_ns,
		.result = pl_mark_truth_add,
		.arg = &run->rows };
	int r;

	if (args.marking == NULL)
		return 0;
	if (t->marking.method != 0) {
		pl_diag_set(diag,
			"--marking: the switches of this network mark already, as \"marking\" of its file says");
		run->usage = true;
		return -EINVAL;
	}
	cfg.method = (uint8_t)(pl_opt_place(pl_mark_methods, args.marking) + 1);
	r = args.bits.n > 0 ? pl_mark_where_parse(
				      &cfg.where, cfg.method, args.bits.items, args.bits.n, diag)
			    : pl_mark_where_parse(&cfg.where, cfg.method, usual, 1, diag);
	if (r == 0 && t->telemetry == PL_LAB_INT &&
		(is_dscp(&cfg.where.colour) || is_dscp(&cfg.where.second)))
		r = pl_diag_fail(diag, -EINVAL,
			"--bit: between switches with INT the DSCP says so; take ipv4-reserved or ecn:N, or a network with \"telemetry: none\"");
	if (r == 0)
		r = pl_mark_guard_check(&cfg.guard_ns, cfg.method, cfg.period_ns, &spread, diag);
	if (r == 0)
		r = pl_lab_metering_new(&run->marking, run->simulation, t, &cfg, diag);
	run->usage |= r == -EINVAL;
	return r == 0 ? pl_mark_truth_init(&run->rows, args.form, start_ns, t) : r;
}

/* Tells the last results and all totals. When writing failed, prints the error and returns
 * false. */
static bool end_marking(struct run *run)
{
	if (run->marking == NULL)
		return true;
	pl_lab_metering_finish(run->marking);
	pl_mark_truth_tell(
		&run->rows, run->simulation, run->sim, pl_lab_metering_account(run->marking));
	return pl_mark_truth_end(&run->rows);
}

/* Writes the counts of links, queues and flows beside the history. */
static int write_account(struct run *run, const struct pl_lab_topology *t, struct pl_diag *diag)
{
	struct pl_lab_truth_account account = { .text = { 0 } };
	int r;

	pl_lab_simulation_truth(run->simulation, t, &account);
	r = pl_lab_truth_account_write(&account, args.history);
	pl_lab_truth_account_done(&account);
	if (r < 0)
		pl_diag_set(diag, "%s: the accounts of links and flows: %s", args.history,
			strerror(-r));
	return r;
}

/* Without random flows the network has the traffic of a story, or none. */
static int check_flows(const struct pl_lab_topology *t, struct run *run, struct pl_diag *diag)
{
	for (size_t i = 0; i < t->story.n; i++) {
		if (t->story.steps[i].kind == PL_LAB_STORY_TRAFFIC)
			return 0;
	}
	if (args.flows > 0)
		return 0;
	run->usage = true;
	return pl_diag_fail(
		diag, -EINVAL, "simulate: --flows is 1 to 30000, or 0 where a story has traffic");
}

/* what: a file or shape; NULL: the experiment of pl_simulate_marking. */
static int load(struct pl_lab_topology *ret, const char *what, struct pl_diag *diag)
{
	static const char congestion[] =
#include "cli/congestion.inc"
		;

	return what != NULL ? pl_lab_topology_load(ret, what, diag)
			    : pl_lab_topology_parse(ret, "congestion.yaml", congestion,
				      sizeof(congestion) - 1, diag);
}

static int simulate(const char *what, const char *uri, struct run *run, struct pl_diag *diag)
{
	const bool paced = uri != NULL && pl_gen_is_live(uri);
	struct pl_lab_simulation_cfg cfg = { .seed = args.seed,
		.start_ns = paced ? pl_clock_real_ns() : START_NS,
		.duration_ns = args.duration_ns,
		.rate = args.rate,
		.flows = (unsigned int)args.flows,
		.bytes = (uint32_t)args.bytes,
		.block = block,
		.collect = collect,
		.arg = run };
	const struct pl_gen_source source = { next, due_ns, skip_to, run, cfg.start_ns, NULL };
	struct pl_gen_account acc = { 0 };
	struct pl_lab_topology topology;
	struct pl_port *port = NULL;
	int r = load(&topology, what, diag), end;

	if (args.truth != NULL || args.history != NULL || args.marking != NULL)
		cfg.truth = (struct pl_dp_truth_ops){ true_path, true_event, run };
	if (r == 0)
		r = check_flows(&topology, run, diag);
	if (r == 0)
		r = pl_lab_simulation_new(&run->simulation, &topology, &cfg, diag);
	/* Errors from here on do not come from the file. */
	if (r == 0)
		diag->file[0] = '\0';
	if (r == 0)
		r = pl_lab_faults_new(&run->faults, run->simulation, &topology,
			(const char *const *)args.faults.items, args.faults.n, diag);
	/* No such link, no such node. */
	if (r == -ENOENT)
		r = -EINVAL;
	if (r == 0)
		r = open_marking(run, &topology, cfg.start_ns, diag);
	if (r == 0)
		r = open_truth(run, diag);
	if (r < 0) {
		pl_lab_topology_done(&topology);
		return r;
	}
	run->sim = pl_lab_simulation_sim(run->simulation);
	run->end_ns = cfg.start_ns + args.duration_ns + END_NS;
	r = pl_gen_open(&port, uri, args.history, diag);
	if (r == 0) {
		pl_gen_catch_signals();
		r = pl_gen_send(&source, port, paced, 0, &acc, diag);
	}
	end = pl_gen_close(port);
	if (r == 0 && end < 0)
		pl_diag_set(diag, "%s: %s", uri, strerror(-end));
	r = r == 0 ? end : r;
	end = close_truth(run);
	if (r == 0 && end < 0)
		pl_diag_set(diag, "%s: %s", args.truth, strerror(-end));
	r = r == 0 ? end : r;
	if (r == 0 && run->history != NULL)
		r = pl_lab_truth_history_write(run->history, diag);
	if (r == 0 && run->history != NULL)
		r = write_account(run, &topology, diag);
	pl_lab_topology_done(&topology);
	if (r == 0)
		print_account(run, &acc);
	/* end_marking printed the error. */
	run->unwritten = r == 0 && !end_marking(run);
	return r;
}

static int check_usage(const struct pl_opt_list *operands)
{
	if (operands->n == 0)
		pl_complain("simulate: missing network: a file such as leaf-spine.yaml, or a shape "
			    "such as leaf-spine:4x2x2");
	else if (operands->n > 2 || (operands->n == 2 && args.file != NULL))
		pl_complain("simulate: more than one destination");
	else if (args.flows > 30000)
		pl_complain("simulate: --flows is up to 30000");
	else if (args.bytes < 60 || args.bytes > 9000)
		pl_complain("simulate: --size is 60 to 9000 bytes");
	else if (!(args.rate > 0 && args.rate <= 1e7))
		pl_complain("simulate: --rate is up to 10M packets per second");
	else if (args.marking == NULL && args.bits.n > 0)
		pl_complain("simulate: --bit is of --marking METHOD");
	else if (args.marking != NULL && args.truth != NULL && strcmp(args.truth, "-") == 0)
		pl_complain("simulate: --marking prints to standard output: give --truth a file");
	else if (args.bits.n > 2)
		pl_complain("simulate: --bit: at most two");
	else if (args.duration_ns == 0 || args.duration_ns > DURATION_MAX_NS)
		pl_complain("simulate: --duration is up to 1000000s");
	else
		return 0;
	return -EINVAL;
}

static void set_defaults(void)
{
	args.duration_ns = UINT64_C(10) * 1000000000;
	args.rate = 20000;
	args.flows = 64;
	args.bytes = 200;
	args.seed = 1;
	args.period_ns = UINT64_C(1000000000);
	args.delay_ns = UINT64_C(50000000);
	args.deviation_ns = UINT64_C(10000000);
	args.form = pl_out_forms[PL_OUT_TABLE];
}

/* Returns an exit code; prints errors. */
static int run_one(const char *what, const char *uri)
{
	struct run run = { .datagrams = uri != NULL &&
					(pl_port_uri_can(uri) & PL_PORT_CAN_DATAGRAMS) != 0 };
	struct pl_diag diag = { .text = "" };
	int r;

	run.last = &run.first;
	pl_buf_init(&run.text);
	r = simulate(what, uri, &run, &diag);
	if (r < 0 && diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	if (r < 0)
		pl_complain_diag(&diag);
	(void)close_truth(&run);
	free_list(run.first);
	free_list(run.lent);
	pl_lab_metering_free(run.marking);
	free(run.rows.totals);
	pl_lab_simulation_free(run.simulation);
	pl_lab_faults_free(run.faults);
	pl_lab_truth_history_free(run.history);
	pl_buf_done(&run.text);
	return run.unwritten  ? PL_EXIT_FAILED
	       : r == 0       ? PL_EXIT_OK
	       : run.usage    ? PL_EXIT_USAGE
	       : r == -EINVAL ? PL_EXIT_CONFIG
			      : PL_EXIT_FAILED;
}

int pl_simulate_marking(uint64_t duration_ns, uint64_t seed, const char *form)
{
	if (duration_ns > DURATION_MAX_NS)
		return pl_fail(PL_EXIT_USAGE, "demo marking: --duration is up to 1000000s");
	set_defaults();
	args.flows = 0;
	args.duration_ns = duration_ns;
	args.seed = seed;
	args.form = form;
	args.marking = pl_mark_methods[PL_MARK_MULTIPLEXED - 1];
	return run_one(NULL, NULL);
}

static int run_simulate(int argc, char **argv)
{
	struct pl_opt_list operands;
	int exit_code = PL_EXIT_USAGE;

	set_defaults();
	if (pl_command_parse(&pl_command_simulate, argc, argv, &operands, &exit_code) != 0)
		return exit_code;
	if (check_usage(&operands) == 0)
		exit_code =
			run_one(operands.items[0], operands.n == 2 ? operands.items[1] : args.file);
	pl_opt_list_done(&operands);
	pl_opt_list_done(&args.faults);
	pl_opt_list_done(&args.bits);
	return exit_code;
}

const struct pl_command pl_command_simulate = {
	.name = "simulate",
	.summary = "a network of switches with INT in simulated time, and the truth about it",
	.usage = "[OPTION]… FILE|SHAPE [udp://HOST:PORT]",
	.description =
		"Simulates the network of a lab's file or shape (pathline lab): its switches forward,\n"
		"are INT sources, transits and sinks, and report; hosts send by the seed. Nothing is\n"
		"needed of the machine. Reports to udp://HOST:PORT leave in real time; into a file\n"
		"(-w), or nowhere, time passes as fast as it can.\n"
		"\n"
		"--truth has a path for each packet with what each switch did with it, and an event for\n"
		"each drop with its place, in the fields of telemetry: path_id, node, queue_depth and\n"
		"hop_latency_ns are those of the reports. Times there are true ones. Nodes count from 1\n"
		"in the order of the file or shape. A link without a rate has 1 Gb/s and a queue of\n"
		"256 KiB, one without a delay 1 us.\n"
		"\n"
		"--truth-history has the same as the folder of a history, for questions over it and the\n"
		"reports together: pathline query QUESTION FOLDER reports.pcap. Records of the truth have\n"
		"no exporter; docs/guide/simulate.md has questions that join the two. Accounts of links, queues\n"
		"and flows are in it, too: the streams truth_links and truth_flows; and of a network whose file has\n"
		"marking the block records of its switches: the stream marks.\n"
		"\n"
		"--marking prints loss and delay by alternate marking of each link, for each flow and block,\n"
		"beside what its queue and link did to the same packets: dropped, lost, time in the queue,\n"
		"the true delay of the packet whose delay was measured. at_s is when a block began.\n"
		"\n"
		"A story of the file is carried out: links impaired and restored, traffic started and stopped.\n"
		"\n"
		"--impair takes the keys of pathline lab impair, several with spaces between them. A later\n"
		"one for the same direction changes what it names and leaves the rest.",
	.examples =
		"  pathline simulate leaf-spine:4x2x2 -w reports.pcap --truth truth.jsonl\n"
		"  pathline simulate leaf-spine:4x2x2 -w reports.pcap --truth-history truth\n"
		"      --impair 'leaf1-spine2:loss=0.05@1s' --impair 'leaf3>spine1:delay=200us'\n"
		"  pathline simulate --rate 2k --duration 60s diamond udp://127.0.0.1:32766\n"
		"  pathline simulate line:3 --duration 1s --truth -\n"
		"  pathline simulate --flows 0 --duration 28s --marking multiplexed\n"
		"      docs/examples/marking/congestion.yaml\n",
	.options = options,
	.run = run_simulate,
};
