/* SPDX-License-Identifier: BSD-2-Clause */
/* Rulings on answers of ClickHouse, and the kinds of rows that a spool refuses;
 * tests/interop/clickhouse.py checks the statement and the rows on a server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/test.h"
#include "base/test_folder.h"
#include "export/clickhouse.h"

static void test_answers(void)
{
	static const struct {
		int status;
		const char *body;
		enum pl_ruling_kind kind;
		bool whole;
	} cases[] = {
		{ 200, "", PL_RULING_DELIVERED, false },
		{ 200, "Code: 60", PL_RULING_DELIVERED, false },
		{ 0, "Couldn't connect to server", PL_RULING_RETRY, false },
		{ 500, "Code: 60, e.displayText() = DB::Exception: Table x doesn't exist.",
			PL_RULING_HOLD, false },
		{ 404, "Code: 60. DB::Exception: Table x does not exist. (UNKNOWN_TABLE)",
			PL_RULING_HOLD, false },
		{ 400, "Code: 16. DB::Exception: No such column", PL_RULING_HOLD, false },
		{ 403, "Code: 516. DB::Exception: default: Authentication failed", PL_RULING_HOLD,
			false },
		{ 500, "Code: 252. DB::Exception: Too many parts (300)", PL_RULING_RETRY, false },
		{ 500, "Code: 252. DB::Exception: Too many partitions for single INSERT block",
			PL_RULING_REFUSED, false },
		{ 500, "Code: 241. DB::Exception: Memory limit", PL_RULING_RETRY, false },
		{ 500, "Code: 33. DB::Exception: Cannot read all data", PL_RULING_REFUSED, true },
		{ 400, "Code: 117. DB::Exception: incorrect data", PL_RULING_REFUSED, true },
		{ 500, "Code: 1001. DB::Exception: std", PL_RULING_DOUBTFUL, false },
		{ 500, "Code: ", PL_RULING_DOUBTFUL, false },
		{ 500, "Code: 99999999999999999999999", PL_RULING_DOUBTFUL, false },
		{ 502, "<html>", PL_RULING_RETRY, false },
		{ 413, "", PL_RULING_TOO_BIG, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_http_answer answer = { .status = cases[i].status };
		struct pl_ruling ruling = { .whole = false };

		answer.len =
			(uint32_t)snprintf(answer.body, sizeof(answer.body), "%s", cases[i].body);
		pl_clickhouse_answer(&answer, 10, &ruling);
		ok(ruling.kind == cases[i].kind && ruling.whole == cases[i].whole, "%d %s: %d",
			cases[i].status, cases[i].body, (int)ruling.kind);
	}
}

/* ---- a server that does not answer ---- */

static void post_nowhere(void *arg, const char *body, size_t len, struct pl_http_answer *ret)
{
	(void)arg;
	(void)body;
	(void)len;
	*ret = (struct pl_http_answer){ .error = -ECONNREFUSED };
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static int no_credentials(void *arg, struct pl_diag *diag)
{
	(void)arg;
	(void)diag;
	return 0;
}

static const struct pl_transport away = { post_nowhere, do_nothing, no_credentials, do_nothing };

static int open_with(
	struct pl_export **ret, const char *spool, enum pl_flat_kind kind, struct pl_diag *diag)
{
	const struct pl_clickhouse_options o = { .server = "http://127.0.0.1:1",
		.table = "packets",
		.kind = kind,
		.sender = { .name = "clickhouse",
			.spool_path = spool,
			.spool_bytes = 16 << 20,
			.in_order = true,
			.transport = &away } };

	return pl_clickhouse_open(ret, &o, pl_clock_mono_ns(), diag);
}

/* A spool with rows of one kind is not opened for the table of another. */
static void test_spool_kind(void)
{
	static const struct pl_pkt96 packets[10];
	const char *spool = pl_test_folder;
	struct pl_diag diag = { .text = "" };
	struct pl_export *e = NULL;

	if (!ok(pl_test_folder_make(), "a folder"))
		return;
	eq(open_with(&e, spool, PL_FLAT_PKT64, &diag), 0, "an output of pkt64");
	pl_clickhouse_write(e, packets, 10, sizeof(packets[0]), pl_clock_mono_ns());
	e->ops->finish(e);
	eq(atomic_load(&e->stats.spooled), 10, "its rows are in the spool");
	e->ops->close(e);
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if (kind == PL_FLAT_PKT64)
			continue;
		e = NULL;
		ok(open_with(&e, spool, (enum pl_flat_kind)kind, &diag) == -EINVAL,
			"%s does not take it over: %s", pl_flat((enum pl_flat_kind)kind)->name,
			diag.text);
		ok(strstr(diag.text, spool) != NULL &&
				strstr(diag.text, pl_flat((enum pl_flat_kind)kind)->name) != NULL,
			"the text names the folder and the kind");
		if (e != NULL)
			e->ops->close(e);
	}
	eq(open_with(&e, spool, PL_FLAT_PKT64, &diag), 0, "pkt64 does: %s", diag.text);
	eq(pl_counter_read(&e->stats.recovered), 10, "with all its rows");
	e->ops->close(e);
	pl_test_remove(spool);
}

int main(void)
{
	test_answers();
	test_spool_kind();
	return pl_test_done();
}
