/* SPDX-License-Identifier: BSD-2-Clause */
/* IOAM options of any bytes; a trace that was read is written again and must come out as the same
 * bytes, but for what reading ignores. */
#include "fuzz.h"
#include "wire/ioam.h"

static void trace(const struct pl_ioam_option *option)
{
	struct pl_ioam_node nodes[PL_IOAM_NODES_MAX], again[PL_IOAM_NODES_MAX];
	struct pl_ioam_trace t, head, second;
	struct pl_ioam_option written;
	uint8_t memory[300];
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_cursor area;
	enum pl_verdict v = pl_ioam_trace_parse(&t, option);
	unsigned int n = 0, m = 0;

	if (v != PL_V_OK)
		return;
	head = t;
	while (n < PL_IOAM_NODES_MAX && pl_ioam_node_next(&t, &nodes[n], &v))
		n++;
	if (v != PL_V_OK)
		return;
	must(pl_cursor_left(&t.nodes) == 0);
	/* Source first for the writer. */
	for (unsigned int i = 0; i < n; i++)
		again[i] = nodes[n - 1 - i];
	must(pl_ioam_put_trace(&b, &head, option->option_type, again, n) == 0);
	area = pl_cursor(memory, b.len);
	must(pl_ioam_next(&area, &written, &v));
	must(pl_cursor_left(&written.body) == pl_cursor_left(&option->body));
	must(pl_ioam_trace_parse(&second, &written) == PL_V_OK);
	must(second.type == head.type && second.flags == head.flags && second.ns == head.ns);
	while (m < PL_IOAM_NODES_MAX && pl_ioam_node_next(&second, &again[m], &v)) {
		/* The hop limit may stand in both forms of the node id, and differ: one is kept. */
		must((again[m].have | PL_IOAM_HAS_HOP_LIMIT) ==
			(nodes[m].have | PL_IOAM_HAS_HOP_LIMIT));
		must(again[m].node == nodes[m].node && again[m].node_wide == nodes[m].node_wide);
		must(again[m].seconds == nodes[m].seconds &&
			again[m].fraction == nodes[m].fraction);
		must(again[m].delay_ns == nodes[m].delay_ns);
		must(again[m].ns_data_wide == nodes[m].ns_data_wide);
		must(again[m].schema == nodes[m].schema);
		must(pl_cursor_left(&again[m].snapshot) == pl_cursor_left(&nodes[m].snapshot));
		m++;
	}
	must(v == PL_V_OK && m == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_cursor area = pl_cursor(data, size);
	struct pl_ioam_option option;
	struct pl_ioam_e2e e2e;
	struct pl_ioam_pot pot;
	struct pl_ioam_dex dex;
	enum pl_verdict v = PL_V_OK;

	for (;;) {
		size_t left = pl_cursor_left(&area);
		bool more = pl_ioam_next(&area, &option, &v);

		if (!more && v != PL_V_IOAM_OPTION)
			return 0;
		must(pl_cursor_left(&area) < left);
		if (!more)
			continue;
		must(option.body.pos >= data && option.body.pos <= option.body.end &&
			option.body.end <= data + size);
		switch ((enum pl_ioam_kind)option.kind) {
		case PL_IOAM_PREALLOCATED:
		case PL_IOAM_INCREMENTAL:
			trace(&option);
			break;
		case PL_IOAM_POT:
			must(pl_ioam_pot_parse(&pot, &option) < PL_V_MAX);
			break;
		case PL_IOAM_E2E:
			must(pl_ioam_e2e_parse(&e2e, &option) < PL_V_MAX);
			break;
		case PL_IOAM_DEX:
			must(pl_ioam_dex_parse(&dex, &option) < PL_V_MAX);
			break;
		}
	}
}
