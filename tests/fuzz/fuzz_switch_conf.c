/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a switch: what is refused has words, and a place in the file; what is accepted is
 * dumped, and the dump says the same and is as right as it. Queues of accepted ports can be.
 */
#include "base/buf.h"
#include "dataplane/program.h"
#include "fuzz.h"

static void look_at(const struct pl_dp_program *program)
{
	for (size_t i = 0; i < program->conf.ports.n; i++) {
		struct pl_dp_port_cfg cfg;
		struct pl_dp_port *port;

		pl_dp_program_queues(program, i, &cfg);
		must(pl_dp_port_new(&port, &cfg, NULL) == 0);
		must(pl_dp_port_next(port) == PL_DP_NEVER);
		pl_dp_port_free(port);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_dp_program program, again;
	struct pl_diag diag = { .text = "" };
	struct pl_buf first, second;
	int r;

	if (pl_dp_program_parse(&program, "fuzz", (const char *)data, size, &diag) < 0) {
		must(diag.text[0] != '\0');
		return 0;
	}
	/* Cells would take gigabytes. */
	for (size_t i = 0; i < program.conf.meters.n; i++)
		((struct pl_dp_conf_meter *)program.conf.meters.items)[i].size = 1;
	for (size_t i = 0; i < program.conf.counters.n; i++)
		((struct pl_dp_conf_cells *)program.conf.counters.items)[i].size = 1;
	for (size_t i = 0; i < program.conf.registers.n; i++)
		((struct pl_dp_conf_cells *)program.conf.registers.items)[i].size = 1;
	r = pl_dp_program_check(&program, &diag);
	if (r == 0)
		look_at(&program);
	else
		must(diag.text[0] != '\0' && diag.line > 0);
	pl_buf_init(&first);
	pl_buf_init(&second);
	pl_conf_dump(pl_dp_conf_rows, &program.conf, &first);
	must(!first.failed);
	diag = (struct pl_diag){ .text = "" };
	must(pl_dp_program_parse(&again, "dump", first.data, first.len, &diag) == 0);
	must((pl_dp_program_check(&again, &diag) == 0) == (r == 0));
	pl_conf_dump(pl_dp_conf_rows, &again.conf, &second);
	must(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	pl_dp_program_done(&again);
	pl_buf_done(&first);
	pl_buf_done(&second);
	pl_dp_program_done(&program);
	return 0;
}
