/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the parts of a chain for their state. */
#include "chain/dta_status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "dta/account.h"

#define ANSWER_NS UINT64_C(2000000000)

void pl_dta_status_init(struct pl_dta_status *s, uint64_t now_ns)
{
	s->since_ns = now_ns;
	s->next_ns = s->every_ns != 0 ? now_ns + s->every_ns : UINT64_MAX;
	s->until_ns = 0;
}

static const char *state_of(const struct pl_dta_process *p, char ended[32])
{
	if (p->pid != 0)
		return !p->is_ready && p->ready != NULL && p->answers == 0 ? "starting"
		       : pl_dta_process_answered(p)                        ? "running"
									   : "silent";
	pl_dta_process_status(p, ended);
	return ended;
}

static bool is_generator(const struct pl_dta_status *s, unsigned int i)
{
	return i > s->n_collectors;
}

/* ---- as a table ---- */

/* In a few words what the part's own account says; nothing while there is none. */
static void put_account(const struct pl_dta_status *s, unsigned int i, struct pl_buf *out)
{
	const struct pl_dta_process *p = &s->parts[i];
	struct pl_dta_account a = { 0 };
	uint64_t made;

	if (is_generator(s, i)) {
		pl_dta_account_generator(&a, p->said, &made);
		pl_buf_printf(out, a.have_generated ? "%" PRIu64 " reports sent" : "-", made);
	} else if (i == s->n_collectors && pl_dta_account_translator(&a, p->text.data, NULL) == 0) {
		pl_buf_printf(out,
			"%" PRIu64 " reports: %" PRIu64 " accepted, %" PRIu64
			" duplicates, %" PRIu64 " unreadable, %" PRIu64 " refused; %" PRIu64
			" operations: %" PRIu64 " done, %" PRIu64 " lost",
			a.reports, a.accepted, a.duplicates, a.unreadable, a.refused, a.operations,
			a.done, a.lost + a.full + a.down + a.outside);
	} else if (i < s->n_collectors && pl_dta_account_collector(&a, p->text.data, NULL) == 0) {
		pl_buf_printf(out, "%" PRIu64 " operations executed", a.executed);
	} else {
		pl_buf_chr(out, '-');
	}
	pl_buf_chr(out, '\n');
}

static void put_table(const struct pl_dta_status *s, uint64_t now_ns, struct pl_buf *out)
{
	char ended[32];

	pl_buf_printf(
		out, "%-24s %8s %-12s %8s  %s\n", "PART", "PID", "STATE", "RESTARTS", "ACCOUNT");
	for (unsigned int i = 0; i < s->n_parts; i++) {
		const struct pl_dta_process *p = &s->parts[i];

		pl_buf_printf(out, "%-24s %8d %-12s %8u  ", p->role, (int)p->pid,
			state_of(p, ended), p->restarts);
		put_account(s, i, out);
	}
	pl_buf_printf(out, "after %.1f s\n\n", (double)(now_ns - s->since_ns) / 1e9);
}

/* ---- as JSON ---- */

static void put_part(const struct pl_dta_status *s, unsigned int i, struct pl_json *json)
{
	const struct pl_dta_process *p = &s->parts[i];
	struct pl_dta_account a = { 0 };
	char ended[32];
	uint64_t made;

	pl_json_object(json);
	pl_json_key(json, "part");
	pl_json_str(json, p->role);
	pl_json_key(json, "pid");
	if (p->pid != 0)
		pl_json_u64(json, (uint64_t)p->pid);
	else
		pl_json_null(json);
	pl_json_key(json, "state");
	pl_json_str(json, state_of(p, ended));
	pl_json_number(json, "restarts", p->restarts);
	pl_json_key(json, "account");
	if (is_generator(s, i)) {
		pl_dta_account_generator(&a, p->said, &made);
		pl_json_object(json);
		if (a.have_generated)
			pl_json_number(json, "sent", made);
		pl_json_object_end(json);
	} else if ((i == s->n_collectors ? pl_dta_account_translator(&a, p->text.data, NULL)
					 : pl_dta_account_collector(&a, p->text.data, NULL)) == 0) {
		pl_json_raw(json, p->text.data, p->text.len); /* as the part itself prints it */
	} else {
		pl_json_null(json);
	}
	pl_json_object_end(json);
}

static void put_json(const struct pl_dta_status *s, uint64_t now_ns, struct pl_buf *out)
{
	struct pl_json object, *json = &object;

	pl_json_init(json, out);
	pl_json_object(json);
	pl_json_key(json, "kind");
	pl_json_str(json, "status");
	pl_json_key(json, "seconds");
	pl_json_double(json, (double)(now_ns - s->since_ns) / 1e9);
	pl_json_key(json, "parts");
	pl_json_array(json);
	for (unsigned int i = 0; i < s->n_parts; i++)
		put_part(s, i, json);
	pl_json_array_end(json);
	pl_json_object_end(json);
	pl_buf_chr(out, '\n');
}

/* ---- when ---- */

static bool all_answered(const struct pl_dta_status *s)
{
	for (unsigned int i = 0; i < s->n_parts; i++) {
		if (s->parts[i].pid != 0 && !pl_dta_process_answered(&s->parts[i]))
			return false;
	}
	return true;
}

static void print(const struct pl_dta_status *s, uint64_t now_ns)
{
	struct pl_buf out;

	pl_buf_init(&out);
	if (s->json)
		put_json(s, now_ns, &out);
	else
		put_table(s, now_ns, &out);
	if (out.failed)
		pl_say("%s", strerror(ENOMEM));
	else
		s->print.text(s->print.arg, out.data, out.len);
	pl_buf_done(&out);
}

void pl_dta_status_step(struct pl_dta_status *s, uint64_t now_ns, bool asked)
{
	if (s->until_ns == 0 && (asked || now_ns >= s->next_ns)) {
		for (unsigned int i = 0; i < s->n_parts; i++)
			(void)pl_dta_process_ask(&s->parts[i]); /* one that ended says so by that */
		s->until_ns = now_ns + ANSWER_NS;
		if (s->every_ns != 0)
			s->next_ns = now_ns + s->every_ns;
	}
	if (s->until_ns == 0 || (now_ns < s->until_ns && !all_answered(s)))
		return;
	s->until_ns = 0;
	print(s, now_ns);
}
