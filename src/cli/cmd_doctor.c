/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline doctor: prints what the checks of this machine found. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/command.h"
#include "doctor/doctor.h"

static const char *output;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		PL_ARGS_TEXT_OR_JSON(output),
		{ .type = PL_OPT_END },
	};

	output = "text";
	return table;
}

static void write_text(struct pl_buf *out, const char *name, const struct pl_finding *f)
{
	pl_buf_printf(out, "%-5s %-15s %s\n", pl_doctor_status_names[f->status], name, f->found);
	if (f->fix[0] != '\0')
		pl_buf_printf(out, "%-5s %-15s -> %s\n", "", "", f->fix);
}

static void write_json(struct pl_json *json, const char *name, const struct pl_finding *f)
{
	pl_json_object(json);
	pl_json_text(json, "name", name);
	pl_json_text(json, "status", pl_doctor_status_names[f->status]);
	pl_json_text(json, "found", f->found);
	if (f->fix[0] != '\0')
		pl_json_text(json, "fix", f->fix);
	pl_json_object_end(json);
}

static int run(int argc, char **argv)
{
	unsigned int counts[PL_DOCTOR_MAX] = { 0 };
	struct pl_opt_list operands;
	struct pl_json json;
	struct pl_buf out;
	bool as_json;
	int code;

	if (pl_command_parse(&pl_command_doctor, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		pl_complain("doctor takes no operand, not '%s'", operands.items[0]);
		pl_opt_list_done(&operands);
		return PL_EXIT_USAGE;
	}
	pl_opt_list_done(&operands);

	as_json = strcmp(output, "json") == 0;
	pl_buf_init(&out);
	pl_json_init(&json, &out);
	if (as_json) {
		pl_json_object(&json);
		pl_json_key(&json, "checks");
		pl_json_array(&json);
	}
	for (size_t i = 0; i < pl_doctor_n_checks; i++) {
		struct pl_finding f = { 0 };

		pl_doctor_checks[i].run(&f);
		counts[f.status]++;
		if (as_json)
			write_json(&json, pl_doctor_checks[i].name, &f);
		else
			write_text(&out, pl_doctor_checks[i].name, &f);
	}
	if (as_json) {
		pl_json_array_end(&json);
		for (unsigned int s = 0; s < PL_DOCTOR_MAX; s++) {
			pl_json_key(&json, pl_doctor_status_names[s]);
			pl_json_u64(&json, counts[s]);
		}
		pl_json_object_end(&json);
		pl_buf_chr(&out, '\n');
	} else {
		pl_buf_printf(&out, "%u ok, %u warn, %u fail\n", counts[PL_DOCTOR_OK],
			counts[PL_DOCTOR_WARN], counts[PL_DOCTOR_FAIL]);
	}
	fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
	return counts[PL_DOCTOR_FAIL] > 0 ? PL_EXIT_UNAVAILABLE : PL_EXIT_OK;
}

const struct pl_command pl_command_doctor = {
	.name = "doctor",
	.summary = "check what this machine supports, and print the command that mends each fault",
	.usage = "[OPTION]…",
	.description =
		"Changes nothing, and needs no privileges. Each line is ok, warn (something will be slower or\n"
		"missing) or fail (pathline cannot work); the line below it says what to do. Exit code\n"
		"69: a line failed.",
	.examples = "  pathline doctor\n  pathline doctor -o json\n",
	.options = options,
	.run = run,
};
