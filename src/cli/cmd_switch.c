/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline switch: runs the software switch, and sends requests to a running one. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ask/switch_client.h"
#include "ask/switch_controller.h"
#include "base/json.h"
#include "cli/args.h"
#include "cli/command.h"
#include "runtime/serve.h"
#include "service/switch.h"
#include "show/stdout.h"

static const char *const words[] = { "check", "table", "counters", "meters", "registers", "ports",
	"tables", "account", "controller", NULL };

static struct {
	const char *file, *socket, *form;
	struct pl_args_service service;
} args;

/* The line of standard input of each change of the request (unsigned int). */
static struct pl_buf lines;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 'c', "config", &args.file, "FILE",
			"YAML file of the switch (docs/guide/switch.md); requests take the path of the control socket from it",
			NULL },
		{ PL_OPT_STRING, 's', "socket", &args.socket, "PATH",
			"control socket of the running switch", NULL },
		PL_ARGS_TEXT_OR_JSON(args.form),
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		PL_ARGS_SERVICE(args.service),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- the file ---- */

/* Checks the outputs of block records in the program, without opening them. */
static int check_outputs(const struct pl_dp_program *program, struct pl_diag *diag)
{
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_MARK128 };
	char *const *to = program->conf.marking.to.items;
	struct pl_diag why = { .text = "" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < program->conf.marking.to.n; i++)
		r = pl_tap_out_check(to[i], &settings, &why);
	if (r < 0)
		pl_diag_set(diag, "marking.to: %s", why.text);
	return r;
}

/* Returns 0, or prints the error and returns an exit code. */
static int load(struct pl_dp_program *ret, bool check)
{
	struct pl_diag diag = { .text = "" };
	int r;

	if (args.file == NULL)
		return pl_fail(PL_EXIT_USAGE, "switch: missing -c FILE");
	r = pl_dp_program_load(ret, args.file, &diag);
	if (r == 0 && check) {
		r = pl_dp_program_check(ret, &diag);
		if (r == 0)
			r = check_outputs(ret, &diag);
		if (r < 0)
			pl_dp_program_done(ret);
	}
	if (r == 0)
		return 0;
	if (diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	pl_complain_diag(&diag);
	return r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_CONFIG;
}

static int check_file(void)
{
	struct pl_dp_program program;
	int code = load(&program, true);

	if (code != 0)
		return code;
	printf("%s: switch %s with %zu ports and %zu tables\n", args.file, program.conf.name,
		program.conf.ports.n, program.conf.tables.n);
	pl_dp_program_done(&program);
	return PL_EXIT_OK;
}

/* ---- running ---- */

static void tell_begin(void *arg)
{
	const struct pl_switch *s = arg;

	pl_complain("switch %s forwards between %u ports", s->program->conf.name, s->n_ports);
}

static int run_switch(void)
{
	struct pl_runtime_options run;
	struct pl_dp_program program;
	struct pl_service service;
	struct pl_switch *s;
	int code = load(&program, true);

	if (code != 0)
		return code;
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		pl_complain("out of memory");
		pl_dp_program_done(&program);
		return PL_EXIT_FAILED;
	}
	s->program = &program;
	s->file = args.file;
	service = (struct pl_service){ &pl_switch_service, s };
	run = pl_args_runtime(&args.service, &service, 1, tell_begin, s);
	code = pl_serve(&run);
	/* An unusable value is in the program's file. */
	if (code == PL_EXIT_USAGE)
		code = PL_EXIT_CONFIG;
	pl_switch_close(s);
	free(s);
	pl_dp_program_done(&program);
	return code;
}

/* ---- asking ---- */

static void put_cell(const char *name, const json_t *cell, const char *before, struct pl_buf *out)
{
	if (json_is_string(cell))
		pl_buf_printf(out, "%s%s", before, json_string_value(cell));
	else if (json_is_boolean(cell))
		pl_buf_printf(out, "%s%s %s", before, name, json_is_true(cell) ? "yes" : "no");
	else if (json_is_integer(cell))
		pl_buf_printf(
			out, "%s%s %" JSON_INTEGER_FORMAT, before, name, json_integer_value(cell));
}

/* Members of an object in a line. */
static void put_line(json_t *row, struct pl_buf *out)
{
	const char *name, *before = "";
	json_t *cell;

	json_object_foreach(row, name, cell)
	{
		put_cell(name, cell, before, out);
		before = "  ";
	}
	pl_buf_chr(out, '\n');
}

/* The list, or the object, that an answer holds. */
static void put_text(json_t *answer, struct pl_buf *out)
{
	const char *key, *name;
	json_t *value, *x;
	size_t i;

	json_object_foreach(answer, key, value)
	{
		json_array_foreach(value, i, x)
		{
			put_line(x, out);
		}
		json_object_foreach(value, name, x)
		{
			if (json_is_integer(x))
				put_cell(name, x, "", out);
			else
				pl_buf_printf(out, "%s ", name);
			if (json_is_object(x))
				put_line(x, out);
			else
				pl_buf_chr(out, '\n');
		}
	}
}

/* Adds the wrong line of standard input to the error, when changes came from there. */
static void complain_refused(const json_t *answer, const char *text)
{
	const json_t *change = json_object_get(answer, "change");
	const json_int_t n = json_integer_value(change);
	unsigned int line;

	if (!json_is_integer(change) || n < 0 || (uint64_t)n >= lines.len / sizeof(line)) {
		pl_complain("switch: %s", text);
		return;
	}
	memcpy(&line, lines.data + (size_t)n * sizeof(line), sizeof(line));
	pl_complain("standard input:%u: %s", line, text);
}

/* Prints the answer. Returns the exit code; prints an error when the switch refused. */
static int show(struct pl_buf *answer)
{
	json_error_t error;
	json_t *x = json_loadb(answer->data, answer->len, 0, &error);
	struct pl_buf out;
	int code = PL_EXIT_OK;

	if (x == NULL)
		return pl_fail(PL_EXIT_FAILED, "switch: not an answer of a switch: %s", error.text);
	pl_buf_init(&out);
	if (!json_is_true(json_object_get(x, "ok"))) {
		const char *text = json_string_value(json_object_get(x, "error"));

		complain_refused(x, text != NULL ? text : "refused");
		code = PL_EXIT_FAILED;
	} else if (strcmp(args.form, "json") == 0) {
		pl_buf_printf(&out, "%s\n", answer->data);
		code = pl_stdout_all(&out);
	} else {
		put_text(x, &out);
		code = pl_stdout_all(&out);
	}
	pl_buf_done(&out);
	json_decref(x);
	return code;
}

/* Finds the control socket: that of `program` when only its file is given. Returns 0, or prints the
 * error and returns an exit code. */
static int find_socket(struct pl_dp_program *program, const char **ret_path)
{
	int code;

	*ret_path = args.socket;
	if (args.socket != NULL)
		return 0;
	code = load(program, false);
	if (code != 0)
		return code;
	*ret_path = program->conf.control;
	if (*ret_path != NULL)
		return 0;
	return pl_fail(PL_EXIT_CONFIG, "switch: %s has no control socket; add \"control: PATH\"",
		args.file);
}

static int ask(const struct pl_buf *request)
{
	struct pl_dp_program program = { .text = NULL };
	struct pl_diag diag = { .text = "" };
	struct pl_buf answer;
	const char *path;
	int code = find_socket(&program, &path), r = 0;

	pl_buf_init(&answer);
	if (code == 0)
		r = pl_switch_ask(path, request, &answer, &diag);
	if (r < 0) {
		pl_complain_diag(&diag);
		code = r == -EMSGSIZE ? PL_EXIT_FAILED : PL_EXIT_UNAVAILABLE;
	}
	if (code == 0)
		code = show(&answer);
	pl_buf_done(&answer);
	if (program.text != NULL)
		pl_dp_program_done(&program);
	return code;
}

static void put_member(struct pl_json *json, const char *key, const char *value)
{
	if (value != NULL)
		pl_json_text(json, key, value);
}

static int ask_word(const char *word, const char *key, const char *value)
{
	struct pl_buf request;
	struct pl_json json;
	int code;

	pl_buf_init(&request);
	pl_json_init(&json, &request);
	pl_json_object(&json);
	put_member(&json, "do", word);
	put_member(&json, key, value);
	pl_json_object_end(&json);
	code = ask(&request);
	pl_buf_done(&request);
	return code;
}

/* ---- tables ---- */

static void put_change(struct pl_json *json, const char *kind, const char *table, const char *entry)
{
	pl_json_object(json);
	put_member(json, "kind", kind);
	put_member(json, "table", table);
	put_member(json, "entry", entry);
	pl_json_object_end(json);
}

/* Reads lines "KIND TABLE ENTRY" from standard input. Returns false after printing an error. */
static bool put_lines(struct pl_json *json)
{
	char *line = NULL;
	size_t cap = 0;
	unsigned int number = 0;

	while (getline(&line, &cap, stdin) > 0) {
		char *save = NULL, *kind, *table;

		number++;
		line[strcspn(line, "\n")] = '\0';
		kind = strtok_r(line, " ", &save);
		if (kind == NULL || kind[0] == '#')
			continue;
		table = strtok_r(NULL, " ", &save);
		if (table == NULL) {
			pl_complain("standard input:%u: write KIND TABLE ENTRY", number);
			free(line);
			return false;
		}
		put_change(json, kind, table, save);
		pl_buf_add(&lines, (const char *)&number, sizeof(number));
	}
	free(line);
	return true;
}

static int change(const char *kind, const struct pl_opt_list *operands)
{
	struct pl_buf request;
	struct pl_json json;
	int code = PL_EXIT_FAILED;
	bool fine = true;

	pl_buf_init(&lines);
	pl_buf_init(&request);
	pl_json_init(&json, &request);
	pl_json_object(&json);
	put_member(&json, "do", "change");
	pl_json_key(&json, "changes");
	pl_json_array(&json);
	if (strcmp(kind, "change") == 0)
		fine = put_lines(&json);
	else if (strcmp(kind, "clear") == 0)
		put_change(&json, kind, operands->items[2], NULL);
	for (size_t i = 3; strcmp(kind, "change") != 0 && i < operands->n; i++)
		put_change(&json, kind, operands->items[2], operands->items[i]);
	if (fine) {
		pl_json_array_end(&json);
		pl_json_object_end(&json);
		code = ask(&request);
	}
	pl_buf_done(&request);
	pl_buf_done(&lines);
	return code;
}

static int run_table(const struct pl_opt_list *operands)
{
	/* How many operands each takes: of the words, the table, entries. */
	static const struct {
		const char *word;
		size_t least, most;
	} forms[] = { { "add", 4, SIZE_MAX }, { "set", 4, SIZE_MAX }, { "delete", 4, SIZE_MAX },
		{ "clear", 3, 3 }, { "change", 2, 2 }, { "dump", 3, 3 } };

	for (size_t i = 0; operands->n > 1 && i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strcmp(operands->items[1], forms[i].word) != 0)
			continue;
		if (operands->n < forms[i].least || operands->n > forms[i].most)
			break;
		return strcmp(forms[i].word, "dump") == 0
			       ? ask_word("dump", "table", operands->items[2])
			       : change(forms[i].word, operands);
	}
	return pl_fail(PL_EXIT_USAGE,
		"switch table: write add|set|delete TABLE ENTRY…, clear TABLE, dump TABLE, or change with lines on standard input");
}

/* ADDRESS:PORT TABLE ENTRY */
static int run_controller(const struct pl_opt_list *operands)
{
	struct pl_dp_program program = { .text = NULL };
	struct pl_diag diag = { .text = "" };
	struct pl_switch_controller c = { .listen = NULL };
	int code, r;

	if (operands->n != 4)
		return pl_fail(PL_EXIT_USAGE,
			"switch controller: write ADDRESS:PORT TABLE ENTRY, with {va}, {rkey} and {qpn} in the entry");
	c.listen = operands->items[1];
	c.table = operands->items[2];
	c.entry = operands->items[3];
	code = find_socket(&program, &c.socket);
	if (code == 0) {
		r = pl_switch_controller_run(&c, &diag);
		if (r < 0 && diag.text[0] == '\0')
			pl_diag_set(&diag, "%s", strerror(-r));
		if (r < 0)
			pl_complain_diag(&diag);
		code = r == -EINVAL ? PL_EXIT_USAGE : r < 0 ? PL_EXIT_FAILED : PL_EXIT_OK;
	}
	if (program.text != NULL)
		pl_dp_program_done(&program);
	return code;
}

static int run_word(const struct pl_opt_list *operands)
{
	const char *word = operands->items[0];

	if (strcmp(word, "table") == 0)
		return run_table(operands);
	if (strcmp(word, "controller") == 0)
		return run_controller(operands);
	if (operands->n > 2 ||
		(operands->n == 2 && strcmp(word, "counters") != 0 && strcmp(word, "meters") != 0 &&
			strcmp(word, "registers") != 0))
		return pl_fail(PL_EXIT_USAGE, "switch %s: too many operands", word);
	if (strcmp(word, "check") == 0)
		return check_file();
	for (unsigned int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], word) == 0)
			return ask_word(word, "name", operands->n > 1 ? operands->items[1] : NULL);
	}
	return pl_fail(PL_EXIT_USAGE, "switch: unknown word \"%s\"", word);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	int code;

	memset(&args, 0, sizeof(args));
	args.form = "text";
	if (pl_command_parse(&pl_command_switch, argc, argv, &operands, &code) != 0)
		return code;
	code = operands.n > 0 ? run_word(&operands) : run_switch();
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_switch = {
	.name = "switch",
	.summary = "forward packets as a software switch with match-action tables",
	.usage =
		"-c FILE | check -c FILE | table WORD… | counters | meters | registers [NAME] | ports | tables | account | controller ADDRESS:PORT TABLE ENTRY",
	.description =
		"Forwards packets between the interfaces of a YAML file, by its tables: exact, longest\n"
		"prefix, ternary, range, and windows of the time of day. Actions route, forward, rewrite,\n"
		"count, meter, mirror and drop packets; ports have queues with rates, weights and limits.\n"
		"pathline switch check -c FILE checks a file without privileges. A switch needs CAP_NET_RAW\n"
		"(packet:IFACE), and CAP_NET_ADMIN and CAP_BPF for afxdp:IFACE; it gives them up when its\n"
		"interfaces are open. Every packet is counted: received = forwarded + dropped by cause +\n"
		"kept by actions.\n"
		"\n"
		"A switch that runs is asked by its control socket (-s PATH, or the file's with -c):\n"
		"\n"
		"  table add|set|delete TABLE ENTRY…   change entries: all of the command, or none\n"
		"  table clear TABLE                   remove all entries\n"
		"  table change                        lines KIND TABLE ENTRY of standard input, all or none\n"
		"  table dump TABLE                    entries, with the packets they matched\n"
		"  counters, meters, registers [NAME]  cells that are not 0\n"
		"  ports, tables, account              state and counters\n"
		"  controller ADDRESS:PORT TABLE ENTRY waits for collectors as the controller of the P4-to-RDMA\n"
		"                                      collector does: each connects and says where the switch is to\n"
		"                                      write (pathline collect --controller), which comes into\n"
		"                                      ENTRY in place of {va}, {rkey} and {qpn}. Any host that\n"
		"                                      reaches the port can say where the switch writes\n"
		"\n"
		"No packet is lost by a change, and none sees a part of it. SIGHUP reads the\n"
		"file again: tables, groups, meters, queues and addresses change, all at once; entries of the\n"
		"control socket go. A file that has a fault, or whose ports need a restart, changes nothing.\n"
		"SIGTERM ends a switch; packets in its queues are dropped then, and counted.",
	.examples =
		"  pathline switch check -c s1.yaml\n"
		"  pathline switch -c s1.yaml --web 127.0.0.1:8401\n"
		"  pathline switch table add -c s1.yaml routes 'ip.dst=10.0.3.0/24 -> route 2 02:00:00:00:00:12'\n"
		"  pathline switch table dump -s /run/s1.sock routes\n",
	.options = options,
	.words = words,
	.run = run,
};
