/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of the commands of alternate marking: converting options to values, and serving. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/mark_args.h"
#include "cli/mark_peer.h"
#include "mark/bits.h"
#include "mark/guard.h"
#include "mark/tick.h"
#include "marks/to.h"
#include "runtime/serve.h"
#include "show/flat_out.h"

const char *const pl_mark_arg_by[] = { "flow", "hosts", "none", NULL };
const char *const pl_mark_arg_directions[] = { "in", "out", NULL };

#define CLOCK_ERROR_NS UINT64_C(1000000) /* when it is not given */

void pl_mark_args_begin(struct pl_mark_args *a)
{
	memset(a, 0, sizeof(*a));
	a->period_ns = 1000000000;
	a->flows = PL_OPT_NOT_GIVEN;
	a->clock_error_ns = PL_OPT_NOT_GIVEN;
	a->delay_ns = 50000000;
	a->deviation_ns = 10000000;
	a->check_ns = 2000000000;
	a->probes = PL_OPT_NOT_GIVEN;
}

void pl_mark_args_done(struct pl_mark_args *a)
{
	pl_opt_list_done(&a->bits);
	pl_opt_list_done(&a->rules);
	pl_opt_list_done(&a->to);
}

/* ---- options ---- */

/* In the form of the kernel's program (mark/packet.h). */
static uint32_t header_bit(const struct pl_mark_bit *bit)
{
	return bit->carrier == PL_MARK_AT_RESERVED ? PL_MARK_RESERVED
	       : bit->carrier == PL_MARK_AT_TOS    ? bit->mask
						   : 0;
}

static int read_method(const struct pl_mark_args *a, struct pl_mark_setup *ret)
{
	static const char *const usual[] = { "dscp:0" };
	const bool given = a->bits.n > 0;
	struct pl_mark_where where;
	struct pl_diag diag = { .text = "" };

	ret->method = a->method != NULL ? pl_opt_place(pl_mark_methods, a->method) + 1
		      : a->bits.n > 1   ? PL_MARK_DOUBLE
					: PL_MARK_STEP;
	if (pl_mark_where_parse(&where, ret->method, given ? a->bits.items : usual,
		    given ? a->bits.n : 1, &diag) < 0 ||
		pl_mark_where_is_written(&where, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "--bit: %s", diag.text);
	ret->colour = header_bit(&where.colour);
	ret->second = header_bit(&where.second);
	ret->versions =
		(where.colour.ipv4 ? PL_MARK_IP4 : 0) | (where.colour.ipv6 ? PL_MARK_IP6 : 0);
	ret->place = where.colour.carrier != PL_MARK_AT_OPTION ? PL_MARK_IN_HEADER
		     : where.colour.dst                        ? PL_MARK_IN_DST
							       : PL_MARK_IN_HOP;
	return 0;
}

uint64_t pl_mark_args_clock_error(const struct pl_mark_args *a)
{
	return a->clock_error_ns == PL_OPT_NOT_GIVEN ? CLOCK_ERROR_NS : a->clock_error_ns;
}

static int read_guard(const struct pl_mark_args *a, struct pl_mark_setup *ret)
{
	/* A block that is changed late is as one of another clock. */
	const uint64_t slack = a->loss_only ? pl_mark_tick_slack(a->period_ns) : 0;
	const struct pl_mark_spread spread = { .clock_ns = pl_mark_args_clock_error(a) + slack,
		.delay_ns = a->delay_ns,
		.deviation_ns = a->deviation_ns };
	struct pl_mark_window window;
	struct pl_diag diag = { .text = "" };

	ret->period_ns = a->period_ns;
	if (pl_mark_guard_check(&ret->guard_ns, ret->method, ret->period_ns, &spread, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "%s", diag.text);
	window = pl_mark_pulse_window(ret->method, ret->period_ns, ret->guard_ns);
	ret->from_ns = window.from_ns;
	ret->to_ns = window.to_ns;
	return 0;
}

/* Sets period, method, bits and guard band in *ret. Returns 0, or an exit code after an error
 * message. */
static int make_setup(const struct pl_mark_args *a, struct pl_mark_setup *ret)
{
	int code;

	memset(ret, 0, sizeof(*ret));
	ret->by = a->by != NULL ? pl_opt_place(pl_mark_arg_by, a->by) : PL_MARK_BY_FLOW;
	code = read_method(a, ret);
	return code != 0 ? code : read_guard(a, ret);
}

static int check_numbers(const struct pl_mark_args *a)
{
	if (a->flows == 0 || (a->flows != PL_OPT_NOT_GIVEN && a->flows > PL_HOSTMARK_FLOWS_MAX))
		return pl_fail(PL_EXIT_USAGE, "--flows %" PRIu64 ": from 1 to %u", a->flows,
			PL_HOSTMARK_FLOWS_MAX);
	if (a->point > UINT32_MAX)
		return pl_fail(PL_EXIT_USAGE,
			"--point %" PRIu64 " is too large: at most 4294967295", a->point);
	if (a->to.n > PL_MARK_HOST_TO_MAX)
		return pl_fail(PL_EXIT_USAGE, "at most %d outputs", PL_MARK_HOST_TO_MAX);
	return 0;
}

static int read_probe(const struct pl_mark_args *a, struct pl_mark_host_options *o)
{
	const uint64_t n = a->probes == PL_OPT_NOT_GIVEN ? PL_PROBE_DEFAULT : a->probes;

	if (a->probe == NULL && a->probes != PL_OPT_NOT_GIVEN)
		return pl_fail(
			PL_EXIT_USAGE, "--probes: give the host to which they are sent by --probe");
	if (a->probe == NULL)
		return 0;
	if (n == 0 || n > UINT32_MAX || n > a->period_ns * PL_PROBE_SECOND_MAX / 1000000000)
		return pl_fail(PL_EXIT_USAGE,
			"--probes %" PRIu64
			": from 1 on, and at most %u a second; the period is %.9g s",
			n, PL_PROBE_SECOND_MAX, (double)a->period_ns / 1e9);
	o->probe = a->probe;
	o->probes = (uint32_t)n;
	return 0;
}

static int read_rules(const char *command, const struct pl_mark_args *a,
	struct pl_mark_host_options *o, bool required)
{
	struct pl_diag diag = { .text = "" };

	for (size_t i = 0; i < a->rules.n; i++) {
		if (pl_tap_rules_add(&o->rules, a->rules.items[i], &diag) < 0)
			return pl_fail(
				PL_EXIT_USAGE, "--rule %s: %s", a->rules.items[i], diag.text);
	}
	o->rules_file = a->rules_file;
	if (a->rules.n > 0 || a->rules_file != NULL)
		return 0;
	for (size_t i = 0; i < 2 && a->usual_rules[0] != NULL; i++) {
		if (pl_tap_rules_add(&o->rules, a->usual_rules[i], &diag) < 0)
			return PL_EXIT_FAILED;
	}
	if (a->usual_rules[0] != NULL || a->probe != NULL)
		return 0;
	if (required)
		return pl_fail(PL_EXIT_USAGE,
			"%s: say which packets by --rule or --rules, such as --rule \"take dst=10.0.0.0/8\", or send some by --probe",
			command);
	return pl_tap_rules_add(&o->rules, "take", &diag) < 0 ? PL_EXIT_FAILED : 0;
}

/* Checks options that need the time of a packet. */
static int check_loss_only(const struct pl_mark_args *a, struct pl_mark_host_options *o)
{
	const unsigned int method = o->kernel.setup.method;
	const bool meter = o->kernel.role == PL_HOSTMARK_METER;

	if (!a->loss_only)
		return 0;
	o->kernel.setup.ticks = 1;
	if (method == PL_MARK_STEP || (method == PL_MARK_DOUBLE && meter))
		return 0;
	return pl_fail(PL_EXIT_USAGE,
		"--loss-only takes no times, which method %s needs: take --method step%s, or leave out --loss-only",
		pl_mark_methods[method - 1], meter ? " or double" : " with one --bit");
}

static int read_args(const char *command, const struct pl_mark_args *a,
	struct pl_mark_host_options *o, enum pl_hostmark_role role, bool rules)
{
	int code;

	if (a->dev == NULL)
		return pl_fail(PL_EXIT_USAGE, "%s: name the interface by --dev", command);
	*o = (struct pl_mark_host_options){ .point = (uint32_t)a->point,
		.clock_error_ns =
			a->clock_error_ns == PL_OPT_NOT_GIVEN ? UINT64_MAX : a->clock_error_ns / 2,
		.check_ns = a->check_ns,
		.to = a->to.items,
		.n_to = a->to.n,
		.kernel = { .dev = a->dev,
			.role = role,
			.leaving = a->direction != NULL && strcmp(a->direction, "out") == 0,
			.xdp = a->mode != NULL && strcmp(a->mode, "native") == 0,
			.flows_max = a->flows == PL_OPT_NOT_GIVEN ? 0 : (uint32_t)a->flows,
			.pin = a->pin } };
	if (o->kernel.xdp && o->kernel.leaving)
		return pl_fail(PL_EXIT_USAGE,
			"--mode %s sees packets that enter only; leave out --direction out",
			a->mode);
	code = check_numbers(a);
	if (code == 0)
		code = make_setup(a, &o->kernel.setup);
	if (code == 0)
		code = check_loss_only(a, o);
	if (code == 0)
		code = read_probe(a, o);
	return code != 0 ? code : read_rules(command, a, o, rules);
}

/* ---- serving ---- */

/* Receivers of records beside outputs; NULL: none. */
struct takers {
	struct pl_flat_out *out;
	struct pl_mark_to *to;
};

static void give_records(void *arg, const struct pl_mark128 *records, uint32_t n)
{
	const struct takers *t = arg;

	if (t->out != NULL)
		pl_flat_out_add(t->out, records, n);
	if (t->to != NULL)
		pl_mark_to_take(t->to, records, n);
}

static void give_turned(void *arg)
{
	const struct takers *t = arg;

	if (t->out != NULL)
		pl_flat_out_write(t->out);
	if (t->to != NULL)
		pl_mark_to_turned(t->to);
}

static bool give_full(void *arg)
{
	const struct takers *t = arg;

	return t->out != NULL && pl_flat_out_full(t->out);
}

static void tell_begin(void *arg)
{
	const struct pl_mark_host *h = arg;
	const struct pl_hostmark_options *k = &h->o->kernel;
	static const char *const roles[] = { "marker", "meter", "domain edge" };

	pl_complain("%s on %s%s%s", roles[k->role], k->dev,
		k->role == PL_HOSTMARK_MARKER ? ""
		: k->leaving                  ? ", leaving packets"
					      : ", entering packets",
		pl_hostmark_resumed(h->kernel) ? ", going on where the last process ended" : "");
	if (k->role != PL_HOSTMARK_EDGE)
		pl_complain("period %.9g s, guard band %.9g s", (double)k->setup.period_ns / 1e9,
			(double)k->setup.guard_ns / 1e9);
	if (k->setup.ticks != 0)
		pl_complain("loss only: no clock is read for a packet, records have no times");
	if (((k->setup.colour | k->setup.second) & 3) != 0)
		pl_complain(
			"the bit is in the ECN field: where a flow uses ECN, marks forge congestion");
	if (k->role == PL_HOSTMARK_MARKER && ((k->setup.colour | k->setup.second) & 4) != 0)
		pl_complain(
			"the bit dscp:0 makes best effort the codepoint 1 (Lower Effort, RFC 8622): where a queue on the way goes by it, take another --bit");
	if (pl_hostmark_unnoted(h->kernel) != 0)
		pl_complain(
			"no note of the filter could be written: should this process and its keeper be killed, it stays");
}

int pl_mark_args_run(
	struct pl_mark_host *h, const struct pl_service *beside, const struct pl_mark_args *a)
{
	const struct pl_service services[] = { { &pl_mark_host_ops, h },
		beside != NULL ? *beside : (struct pl_service){ NULL, NULL } };
	const struct pl_runtime_options run =
		pl_args_runtime(&a->service, services, beside != NULL ? 2 : 1, tell_begin, h);
	const int code = pl_serve(&run);

	return code != 0 ? code : pl_mark_host_complete(h) ? PL_EXIT_OK : PL_EXIT_FAILED;
}

/* Statistics follow the records: an array would leave two values on one stream. */
static const char *form_of(const struct pl_mark_args *a)
{
	const char *form = a->form != NULL ? a->form : pl_out_forms[PL_OUT_TABLE];

	return a->service.stats && strcmp(form, pl_out_forms[PL_OUT_JSON]) == 0
		       ? pl_out_forms[PL_OUT_JSONL]
		       : form;
}

/* Records are printed, sent to a peer, or only given to outputs. */
static int serve(struct pl_mark_host *h, struct pl_mark_host_options *o,
	const struct pl_mark_args *a, const struct pl_mark_peer *peer, bool prints)
{
	static struct pl_flat_out out;
	static struct pl_mark_to to;
	static struct takers takers;
	const struct pl_service beside = { &pl_mark_to_ops, &to };
	int code;

	if (prints) {
		pl_flat_out_init(&out, PL_FLAT_MARK128, form_of(a), a->count);
		takers.out = &out;
	}
	if (peer->is) {
		pl_mark_peer_send(peer, &to, a, o);
		takers.to = &to;
	}
	o->records = give_records;
	o->turned = give_turned;
	o->full = give_full;
	o->arg = &takers;
	code = pl_mark_args_run(h, peer->is ? &beside : NULL, a);
	pl_mark_host_close(h);
	if (peer->is)
		pl_mark_to_close(&to);
	/* If it could not be started, no empty table is printed. */
	if (prints && !h->began)
		pl_buf_done(&out.rows.buf);
	else if (prints && !pl_flat_out_end(&out))
		code = PL_EXIT_FAILED;
	return code;
}

int pl_mark_args_serve(const struct pl_command *command, struct pl_mark_args *a,
	enum pl_hostmark_role role, bool rules, bool prints)
{
	static struct pl_mark_host_options o;
	static struct pl_mark_peer peer;
	struct pl_mark_host *h;
	int code = pl_mark_peer_fill(&peer, a, role);

	if (code == 0)
		code = read_args(command->name, a, &o, role, rules);
	if (code != 0)
		return code;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	h->o = &o;
	if (peer.is && role == PL_HOSTMARK_METER)
		code = pl_mark_peer_compare(&peer, h, &o, a, form_of(a));
	else
		code = serve(h, &o, a, &peer, prints);
	free(h);
	return code;
}
