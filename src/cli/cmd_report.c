/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline report: one value, or many, into any primitive of a translator's telemetry memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/confine_reader.h"
#include "cli/region_read.h"
#include "cli/region_values.h"
#include "dta/reporter.h"
#include "service/signals.h"

#define HOPS_MAX    31u
#define WAIT_MAX_NS UINT64_C(50000000)
#define SETTLE_NS   UINT64_C(200000000)
#define PATIENCE_NS UINT64_C(2000000000) /* with a translator that answered before */

static const char *const words[] = { "key-write", "append", "increment", "postcard", "sketch",
	NULL };

static struct {
	const char *form, *key, *key_form, *value, *value_form, *hops;
	uint64_t store, copies, list, by, epoch, column, count, linger_ns, ring, hold_ns;
	double rate;
	bool immediate, sequenced, loop, step_key, step_value, cut;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "What", NULL, NULL, NULL, NULL },
		{ PL_OPT_U64, 0, "store", &args.store, "NUMBER",
			"number of the region at the translator (default 0)", NULL },
		{ PL_OPT_STRING, 'k', "key", &args.key, "KEY", "of key-write, increment, postcard",
			NULL },
		{ PL_OPT_CHOICE, 0, "key-form", &args.key_form, "FORM",
			"form of the key (default text); u32 and u64 are numbers, least significant byte first, be32 most significant first, as u32 is in the published forms",
			pl_key_forms },
		{ PL_OPT_STRING, 'd', "data", &args.value, "VALUE",
			"value, entry, or columns of a sketch in wire format", NULL },
		{ PL_OPT_CHOICE, 0, "data-form", &args.value_form, "FORM",
			"form of --data (default text)", pl_key_forms },
		{ PL_OPT_U64, 0, "copies", &args.copies, "COUNT",
			"copies of key-write, rows of increment (default all of the region; published forms 4)",
			NULL },
		{ PL_OPT_U64, 0, "list", &args.list, "NUMBER", "append: the list (default 0)",
			NULL },
		{ PL_OPT_U64, 0, "by", &args.by, "NUMBER", "increment: amount (default 1)", NULL },
		{ PL_OPT_STRING, 0, "hops", &args.hops, "NODE,…",
			"postcard: nodes of the path; each hop is one report", NULL },
		{ PL_OPT_FLAG, 0, "no-length", &args.cut, NULL,
			"postcard: leave out the length of the path", NULL },
		{ PL_OPT_U64, 0, "epoch", &args.epoch, "NUMBER", "sketch: the epoch (default 0)",
			NULL },
		{ PL_OPT_U64, 0, "column", &args.column, "NUMBER",
			"sketch: the first column (default 0)", NULL },
		{ PL_OPT_FLAG, 0, "immediate", &args.immediate, NULL,
			"ask the collector to wake a worker (write with immediate)", NULL },
		{ PL_OPT_HEADING, 0, "How", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "form", &args.form, "FORM",
			"form of the reports (default pathline)", pl_arg_dta_forms },
		{ PL_OPT_FLAG, 0, "sequenced", &args.sequenced, NULL,
			"number the reports and send again what the translator misses", NULL },
		{ PL_OPT_U64, 0, "ring", &args.ring, "COUNT",
			"reports kept for retransmission (default 8192, tracking 127)", NULL },
		{ PL_OPT_DURATION, 0, "hold", &args.hold_ns, "TIME",
			"how long a report is kept if the translator does not confirm it (default 200ms, tracking 10ms)",
			NULL },
		{ PL_OPT_U64, 'n', "count", &args.count, "COUNT", "number of reports (default 1)",
			NULL },
		{ PL_OPT_FLAG, 0, "loop", &args.loop, NULL, "repeat until a signal", NULL },
		{ PL_OPT_RATE, 0, "rate", &args.rate, "RATE",
			"reports per second (default no limit)", NULL },
		{ PL_OPT_DURATION, 0, "linger", &args.linger_ns, "TIME",
			"how long reports wait to share a datagram (default 1ms)", NULL },
		{ PL_OPT_FLAG, 0, "step-key", &args.step_key, NULL,
			"increase the key by one per report; only for numbers", NULL },
		{ PL_OPT_FLAG, 0, "step-data", &args.step_value, NULL,
			"increase the value by one per report; only for numbers", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* A key or a value, and the number in it when it is one. */
struct item {
	uint8_t *bytes;
	size_t n;
	bool number, little;
};

struct job {
	struct pl_dta_report report;
	struct item key, value;
	uint32_t hops[HOPS_MAX];
	unsigned int n_hops;
	struct pl_reporter *reporter;
	int fd;
	uint64_t unsent;
};

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

/* ---- the socket ---- */

static int open_socket(const char *uri)
{
	const char *text = strncmp(uri, "udp://", 6) == 0 ? uri + 6 : uri;
	struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
	struct pl_addr addr;
	uint16_t port;
	int fd, v6only = 0;

	if (pl_parse_endpoint(text, &addr, &port) < 0 || port == 0 ||
		pl_addr_is_unspecified(&addr)) {
		pl_complain("report: \"%s\" is not udp://ADDRESS:PORT", uri);
		return -EINVAL;
	}
	memcpy(&to.sin6_addr, addr.b, 16);
	to.sin6_port = htons(port);
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof(v6only)) < 0 ||
		connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		int error = -errno;

		pl_complain("report: %s: %s", uri, strerror(errno));
		if (fd >= 0)
			close(fd);
		return error;
	}
	return fd;
}

/* A full socket is waited for; what is refused otherwise is counted, and sent again when it is
 * numbered. */
static void send_datagram(void *arg, const void *bytes, size_t n)
{
	struct job *j = arg;
	struct pollfd writable = { .fd = j->fd, .events = POLLOUT };

	while (send(j->fd, bytes, n, 0) < 0) {
		if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) {
			j->unsent++;
			return;
		}
		(void)poll(&writable, 1, 1);
		if (stop)
			return;
	}
}

static void take_nacks(struct job *j)
{
	uint8_t bytes[64];
	ssize_t n;

	while ((n = recv(j->fd, bytes, sizeof(bytes), 0)) >= 0)
		pl_reporter_nack(j->reporter, pl_clock_mono_ns(), bytes, (size_t)n);
}

/* Until the reporter has something to do, a NACK comes, or `until_ns`. */
static void wait_a_while(struct job *j, uint64_t until_ns)
{
	struct pollfd readable = { .fd = j->fd, .events = POLLIN };
	uint64_t now = pl_clock_mono_ns(), due = pl_reporter_due_ns(j->reporter), wait = 0;
	struct timespec ts;

	if (until_ns < due)
		due = until_ns;
	if (due > now)
		wait = due - now < WAIT_MAX_NS ? due - now : WAIT_MAX_NS;
	ts = (struct timespec){ 0, (long)wait };
	if (ppoll(&readable, 1, &ts, NULL) > 0)
		take_nacks(j);
	pl_reporter_tick(j->reporter, pl_clock_mono_ns());
}

/* ---- what is reported ---- */

static int parse_item(struct item *item, const char *what, const char *text, const char *form)
{
	int r = pl_key_parse(text, form, &item->bytes, &item->n);

	if (r < 0) {
		pl_complain("report: %s \"%s\" is not of the form %s", what, text, form);
		return r;
	}
	item->little = form[0] == 'u';
	item->number = item->little || strcmp(form, "be32") == 0;
	return 0;
}

static void step(struct item *item)
{
	for (size_t i = 0; i < item->n; i++) {
		if (++item->bytes[item->little ? i : item->n - 1 - i] != 0)
			break;
	}
}

static int parse_hops(struct job *j)
{
	const char *p = args.hops;

	while (*p != '\0') {
		char word[24];
		size_t n = strcspn(p, ",");
		uint64_t node;

		if (n >= sizeof(word) || j->n_hops == HOPS_MAX)
			return -EINVAL;
		memcpy(word, p, n);
		word[n] = '\0';
		if (pl_parse_u64(word, &node) < 0 || node >= UINT32_MAX)
			return -EINVAL;
		j->hops[j->n_hops++] = (uint32_t)node;
		p += p[n] == ',' ? n + 1 : n;
	}
	return j->n_hops > 0 ? 0 : -EINVAL;
}

static enum pl_dta_op op_of(const char *word)
{
	enum pl_dta_op op = PL_DTA_KEY_WRITE;

	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], word) == 0)
			op = (enum pl_dta_op)(PL_DTA_KEY_WRITE + i);
	}
	return op;
}

static int usage(const char *what)
{
	pl_complain("report: %s", what);
	return -EINVAL;
}

/* What the options say, complete; complains. */
static int make_report(struct job *j, const char *word)
{
	struct pl_dta_report *r = &j->report;
	bool keyed, valued;

	r->op = op_of(word);
	keyed = r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT || r->op == PL_DTA_POSTCARD;
	valued = r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_APPEND || r->op == PL_DTA_SKETCH;
	if (args.store > UINT16_MAX || args.copies > UINT8_MAX || args.list > UINT32_MAX ||
		args.epoch > UINT32_MAX || args.column > UINT32_MAX ||
		args.ring > PL_REPORTER_RING_MAX)
		return usage("a number is too large for a report");
	if (keyed != (args.key != NULL))
		return usage(keyed ? "missing key (--key)" : "append and sketch have no --key");
	if (valued != (args.value != NULL))
		return usage(valued ? "missing data (--data)" : "this primitive has no --data");
	if ((r->op == PL_DTA_POSTCARD) != (args.hops != NULL))
		return usage("postcard needs --hops, and no other primitive has --hops");
	/* Numbers have one order in the published forms. */
	if (strcmp(args.form, "pathline") != 0 && strcmp(args.key_form, "u32") == 0)
		args.key_form = "be32";
	if ((keyed && parse_item(&j->key, "key", args.key, args.key_form) < 0) ||
		(valued && parse_item(&j->value, "data", args.value, args.value_form) < 0))
		return -EINVAL;
	if ((args.step_key && !j->key.number) || (args.step_value && !j->value.number))
		return usage(
			"--step-key and --step-data need a --key-form or --data-form that is a number");
	if (j->key.n > PL_DTA_KEY_BYTES_MAX)
		return usage("a key has at most 255 bytes");
	if (args.hops != NULL && parse_hops(j) < 0)
		return usage("--hops is a list of at most 31 numbers: 10,20,30");
	r->immediate = args.immediate;
	r->store = (uint16_t)args.store;
	r->key_bytes = (uint8_t)j->key.n;
	r->key = j->key.bytes;
	r->data = j->value.bytes;
	r->data_bytes = (uint32_t)j->value.n;
	r->list = (uint32_t)args.list;
	r->increment = args.by;
	r->epoch = (uint32_t)args.epoch;
	r->first_column = (uint32_t)args.column;
	if (r->op == PL_DTA_KEY_WRITE || r->op == PL_DTA_INCREMENT)
		r->copies = args.copies == 0 && strcmp(args.form, "pathline") != 0
				    ? 4
				    : (uint8_t)args.copies;
	return 0;
}

/* ---- reporting ---- */

static int put(struct job *j, const struct pl_dta_report *report)
{
	int r;

	while ((r = pl_reporter_put(j->reporter, pl_clock_mono_ns(), report)) == -EAGAIN && !stop)
		wait_a_while(j, UINT64_MAX);
	if (r == -EINVAL)
		return usage(
			"this --form cannot carry the report: published forms have no --store, no --no-length, no sketches, and only keys of four bytes (--key-form be32)");
	if (r == -EMSGSIZE)
		return usage("the report does not fit in a datagram of 1400 bytes");
	return r;
}

static int put_once(struct job *j)
{
	struct pl_dta_report hop = j->report;
	int r = 0;

	if (j->report.op != PL_DTA_POSTCARD)
		return put(j, &j->report);
	for (unsigned int i = 0; r == 0 && i < j->n_hops; i++) {
		hop.hop = (uint8_t)(i + 1);
		hop.path_length = args.cut ? 0 : (uint8_t)j->n_hops;
		hop.value = j->hops[i];
		/* The last one wakes. */
		hop.immediate = j->report.immediate && i + 1 == j->n_hops;
		r = put(j, &hop);
	}
	return r;
}

static int report_all(struct job *j)
{
	int r = 0;

	for (uint64_t i = 0; r == 0 && !stop && (args.loop || i < args.count); i++) {
		r = put_once(j);
		if (args.step_key)
			step(&j->key);
		if (args.step_value)
			step(&j->value);
		if (args.sequenced && i % 64 == 0)
			take_nacks(j);
	}
	while (r == 0 && !stop && pl_reporter_waiting(j->reporter) > 0) {
		pl_reporter_flush(j->reporter, pl_clock_mono_ns());
		if (pl_reporter_waiting(j->reporter) > 0)
			wait_a_while(j, UINT64_MAX);
	}
	return r == -EAGAIN ? 0 : r;
}

/* What is still missing on the other side is asked for now. */
static void settle(struct job *j)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(j->reporter);
	uint64_t nacks = 0, unconfirmed = 0, until = pl_clock_mono_ns() + SETTLE_NS;

	while (!stop && pl_clock_mono_ns() < until) {
		wait_a_while(j, until);
		if (c->nacks == nacks && pl_reporter_unconfirmed(j->reporter) == unconfirmed &&
			(c->answers == 0 || unconfirmed > 0))
			continue;
		nacks = c->nacks;
		unconfirmed = pl_reporter_unconfirmed(j->reporter);
		if (c->answers > 0 && unconfirmed == 0)
			return;
		until = pl_clock_mono_ns() + (c->answers > 0 ? PATIENCE_NS : SETTLE_NS);
	}
}

static void tell_account(const struct job *j)
{
	const struct pl_reporter_counters *c = pl_reporter_counters(j->reporter);

	fprintf(stderr, "%" PRIu64 " reports in %" PRIu64 " datagrams, %" PRIu64 " bytes",
		c->reports, c->datagrams, c->bytes);
	if (args.sequenced)
		fprintf(stderr,
			"; %" PRIu64 " NACKs, %" PRIu64 " reports sent again, %" PRIu64
			" asked for too late",
			c->nacks, c->again, c->unavailable);
	if (j->unsent > 0)
		fprintf(stderr, "; %" PRIu64 " datagrams that the system refused", j->unsent);
	if (args.sequenced && c->answers == 0 && c->reports > 0)
		fputs("; the translator confirmed none", stderr);
	fputc('\n', stderr);
}

/* An exit code; says what is known to be missing on the other side. */
static int outcome(const struct job *j)
{
	uint64_t late = pl_reporter_counters(j->reporter)->unavailable,
		 given_up = pl_reporter_counters(j->reporter)->given_up,
		 unconfirmed = pl_reporter_unconfirmed(j->reporter);

	if (late > 0)
		pl_complain(
			"report: %" PRIu64
			" reports are lost: the translator requested them when they had left the ring already (--ring, --hold)",
			late);
	if (given_up > 0)
		pl_complain(
			"report: %" PRIu64
			" reports are lost: the translator gave up on them (translate --nack-tries)",
			given_up);
	if (unconfirmed > 0 && !stop)
		pl_complain("report: %" PRIu64
			    " reports were sent, but the translator did not confirm them",
			unconfirmed);
	if (late > 0 || given_up > 0 || (unconfirmed > 0 && !stop) ||
		(j->unsent > 0 && !args.sequenced))
		return PL_EXIT_FAILED;
	return PL_EXIT_OK;
}

static int run_job(struct job *j, const struct pl_opt_list *operands)
{
	const struct pl_reporter_config config = {
		.form = (enum pl_dta_form)pl_arg_place(pl_arg_dta_forms, args.form),
		.sequenced = args.sequenced,
		.ring = (uint32_t)args.ring,
		.hold_ns = args.hold_ns,
		.linger_ns = args.linger_ns,
		.rate = args.rate,
	};
	struct pl_diag diag = { .text = "" };
	int r;

	if (operands->n != 2) {
		pl_complain(
			"report: missing primitive or destination, such as: pathline report key-write udp://HOST:PORT");
		return PL_EXIT_USAGE;
	}
	if (make_report(j, operands->items[0]) < 0)
		return PL_EXIT_USAGE;
	j->fd = open_socket(operands->items[1]);
	if (j->fd < 0)
		return j->fd == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_UNAVAILABLE;
	r = pl_reporter_new(&j->reporter, &config, send_datagram, j, &diag);
	if (r < 0) {
		pl_complain("report: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	}
	pl_signals_handle(on_stop, (const int[]){ 0 });
	/* The socket is open: a translator's answers are read by a process that can do nothing
	 * else. */
	r = pl_confine_reader(PL_CONFINE_SENDER, NULL, 0);
	if (r != 0)
		return r;
	r = report_all(j);
	if (r < 0)
		return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_FAILED;
	if (args.sequenced)
		settle(j);
	tell_account(j);
	return outcome(j);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	struct job job = { .fd = -1 };
	int code;

	memset(&args, 0, sizeof(args));
	args.form = pl_arg_dta_forms[PL_DTA_PATHLINE];
	args.key_form = args.value_form = pl_key_forms[0];
	args.by = args.count = 1;
	args.linger_ns = 1000000;
	if (pl_command_parse(&pl_command_report, argc, argv, &operands, &code) != 0)
		return code;
	code = PL_EXIT_USAGE;
	if (operands.n > 0 &&
		strcmp(words[op_of(operands.items[0]) - PL_DTA_KEY_WRITE], operands.items[0]) != 0)
		pl_complain(
			"report: unknown primitive \"%s\"; use key-write, append, increment, postcard or sketch",
			operands.items[0]);
	else
		code = run_job(&job, &operands);
	pl_reporter_free(job.reporter);
	if (job.fd >= 0)
		close(job.fd);
	free(job.key.bytes);
	free(job.value.bytes);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_report = {
	.name = "report",
	.summary = "send values to a translator, which writes them into telemetry memory",
	.usage = "key-write|append|increment|postcard|sketch [OPTION]… udp://HOST:PORT",
	.description =
		"Sends reports of Direct Telemetry Access over UDP. With --sequenced each report has a\n"
		"number, and report sends again the reports that the translator misses, while they are in\n"
		"the ring; a confirmation of the translator frees their places. Exit code 1: reports were\n"
		"lost, or a translator that answered before did not confirm them.\n"
		"One source port is one stream of numbers; a new process takes a new port.",
	.examples =
		"  pathline report key-write -k host7 -d up-- udp://127.0.0.1:40040\n"
		"  pathline report append --list 3 -d 0a0b0c0d --data-form hex udp://127.0.0.1:40040\n"
		"  pathline report increment -k 10.0.0.1 --by 1500 --store 2 udp://127.0.0.1:40040\n"
		"  pathline report postcard -k flow1 --hops 10,20,30 --store 3 udp://127.0.0.1:40040\n"
		"  pathline report key-write --sequenced -k 0 --key-form u64 --step-key -d 0 \\\n"
		"    --data-form u32 --step-data --count 1000000 --rate 100k udp://127.0.0.1:40040\n",
	.options = options,
	.words = words,
	.run = run,
};
