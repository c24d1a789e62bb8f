/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline lab: builds networks for experiments, and removes them. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "lab/apply.h"
#include "lab/check.h"
#include "lab/control.h"
#include "lab/plan.h"
#include "lab/show.h"
#include "lab/traffic.h"
#include "lab/up.h"
#include "show/stdout.h"

static const char *const words[] = { "up", "down", "show", "check", "apply", "exec", "impair",
	"truth", "traffic", NULL };

static struct {
	const char *form, *tier;
	bool dry_run;
	uint64_t duration_ns, on_ns, off_ns, size;
	double rate;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_FLAG, 0, "dry-run", &args.dry_run, NULL,
			"up: print the steps as shell commands, and do nothing", NULL },
		{ PL_OPT_CHOICE, 0, "tier", &args.tier, "TIER",
			"up: root (network namespaces), unprivileged (a user namespace) or "
			"simulated (no privileges); by default the first of them that is possible",
			pl_lab_tiers },
		PL_ARGS_TEXT_OR_JSON(args.form),
		{ PL_OPT_HEADING, 0, "Options for traffic", NULL, NULL, NULL, NULL },
		{ PL_OPT_DURATION, 'd', "duration", &args.duration_ns, "TIME",
			"send for this long (default 5s)", NULL },
		{ PL_OPT_RATE, 0, "rate", &args.rate, "RATE",
			"udp, onoff, incast, dns: bits of payload per second of each sender (default 1M)",
			NULL },
		{ PL_OPT_SIZE, 0, "size", &args.size, "SIZE",
			"bytes of a datagram or answer (default 1000, with dns 200)", NULL },
		{ PL_OPT_DURATION, 0, "on", &args.on_ns, "TIME",
			"onoff, incast: time of sending (default 10ms)", NULL },
		{ PL_OPT_DURATION, 0, "off", &args.off_ns, "TIME",
			"onoff, incast: time of silence after sending (default 90ms)", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static int exit_of(int error)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		return PL_EXIT_PRIVILEGE;
	case -EOPNOTSUPP:
		return PL_EXIT_UNAVAILABLE;
	case -EINVAL:
		return PL_EXIT_CONFIG;
	default:
		return PL_EXIT_FAILED;
	}
}

static int say(int error, const struct pl_diag *diag)
{
	if (diag->text[0] != '\0')
		pl_complain_diag(diag);
	else
		pl_complain("lab: %s", strerrordesc_np(-error));
	return exit_of(error);
}

static bool is_json(void)
{
	return strcmp(args.form, "json") == 0;
}

static int print_plan(const struct pl_lab_topology *t, struct pl_diag *diag)
{
	struct pl_buf out = { 0 };
	struct pl_lab_plan plan;
	int r = pl_lab_plan_make(&plan, t, diag);

	if (r < 0)
		return say(r, diag);
	pl_lab_plan_text(&plan, &out);
	pl_lab_plan_done(&plan);
	return pl_stdout_all(&out);
}

static void interrupted(void)
{
	pl_complain("lab up: interrupted; the lab is taken down");
}

static int bring_up(const struct pl_lab_topology *t, struct pl_diag *diag)
{
	uint64_t began = pl_clock_mono_ns();
	char run[PL_LAB_FOLDER_MAX], folder[PL_LAB_FOLDER_MAX + PL_LAB_LAB_NAME_MAX + 2];
	struct pl_buf out = { 0 };
	enum pl_lab_tier tier;
	int r = pl_lab_choose_tier(&tier, args.tier, diag);

	/* Prints why the lab is only simulated. */
	if (r == 0 && diag->text[0] != '\0') {
		pl_complain("lab up: %s; the network is simulated", diag->text);
		*diag = (struct pl_diag){ .text = "" };
	}
	/* Must be read before the process becomes root of a user namespace. */
	if (r == 0)
		r = pl_lab_run_folder(run, diag);
	if (r == 0)
		r = pl_lab_up(t, tier, interrupted, diag);
	if (r < 0)
		return say(r, diag);
	snprintf(folder, sizeof(folder), "%s/%s", run, t->name);
	pl_lab_show_up(t, tier, folder, pl_clock_mono_ns() - began, is_json(), &out);
	return pl_stdout_all(&out);
}

static int up(const char *what)
{
	struct pl_diag diag = { .text = "" };
	struct pl_lab_topology t;
	int r = pl_lab_topology_load(&t, what, &diag), code;

	if (r == 0)
		r = pl_lab_topology_add_collector(&t, &diag);
	if (r < 0)
		code = say(r == -ENOENT || r == -EACCES ? -EINVAL : r, &diag);
	else if (args.dry_run)
		code = print_plan(&t, &diag);
	else
		code = bring_up(&t, &diag);
	pl_lab_topology_done(&t);
	return code;
}

static int down(const char *what)
{
	char name[PL_LAB_LAB_NAME_MAX + 1];
	struct pl_diag diag = { .text = "" };
	int r = pl_lab_down(what, name, &diag);

	if (r < 0)
		return say(r, &diag);
	pl_complain("the lab '%s' is down", name);
	return PL_EXIT_OK;
}

static int show(const char *what)
{
	struct pl_diag diag = { .text = "" };
	struct pl_buf out = { 0 };
	struct pl_lab_found f;
	int r = pl_lab_find(&f, what, &diag), code;

	if (r == 0)
		pl_lab_show(&f, is_json(), &out);
	code = r < 0 ? say(r, &diag) : pl_stdout_all(&out);
	pl_lab_found_done(&f);
	return code;
}

static int apply(const char *what)
{
	struct pl_diag diag = { .text = "" };
	struct pl_buf lines = { 0 }, out = { 0 };
	struct pl_lab_topology want;
	struct pl_lab_found f = { .pidfd = -1 };
	int r = pl_lab_topology_load(&want, what, &diag), code;

	if (r == -ENOENT || r == -EACCES)
		r = -EINVAL;
	if (r == 0)
		r = pl_lab_find(&f, strcmp(what, "-") == 0 ? want.name : what, &diag);
	if (r == 0) {
		snprintf(diag.file, sizeof(diag.file), "%s", what);
		r = pl_lab_apply(&f, &want, &lines, &diag);
	}
	if (r == 0)
		pl_lab_show_applied(&f, &lines, is_json(), &out);
	code = r < 0 ? say(r, &diag) : pl_stdout_all(&out);
	pl_buf_done(&lines);
	pl_lab_found_done(&f);
	pl_lab_topology_done(&want);
	return code;
}

/* Waits until the commands without `ready` have finished, and then ends the others, one after the
 * other. */
static int finish(const struct pl_lab_found *f, struct pl_lab_sayings *s, struct pl_diag *diag)
{
	bool told = false;
	int r;

	while ((r = pl_lab_sayings_finish(f, s, diag)) == 1) {
		for (unsigned int i = 0; i < s->n && !told; i++) {
			if (s->all[i].pid == 0 || s->all[i].of->ready != NULL)
				continue;
			pl_complain("lab check: waits until '%s' ends", s->all[i].of->name);
			told = true;
		}
		pl_lab_sayings_done(s);
		(void)poll(NULL, 0, 50);
	}
	return r;
}

static int check_found(const struct pl_lab_found *f, struct pl_diag *diag)
{
	struct pl_lab_sayings *s = calloc(1, sizeof(*s));
	struct pl_buf out = { 0 };
	int r = s == NULL ? -ENOMEM : 0, code;

	if (f->tier == PL_LAB_SIMULATED) {
		r = pl_diag_fail(diag, -EOPNOTSUPP,
			"lab '%s' is simulated, in which no commands run: there is nothing to check",
			f->name);
	} else if (!pl_lab_has_sayings(f)) {
		r = pl_diag_fail(diag, -ENOENT,
			"lab '%s' has nothing to check: no command under \"run\" of its file has a \"name\"; only named commands are waited for and have their \"check\" run",
			f->name);
	}
	if (r == 0)
		r = finish(f, s, diag);
	if (r == 0)
		r = pl_lab_check(f, s, is_json(), &out, diag);
	code = r < 0 ? say(r, diag) : pl_stdout_all(&out);
	if (r < 0)
		pl_buf_done(&out);
	if (s != NULL)
		pl_lab_sayings_done(s);
	free(s);
	return code == PL_EXIT_OK && r == 0 ? PL_EXIT_FAILED : code;
}

static int check(const char *what)
{
	struct pl_diag diag = { .text = "" };
	struct pl_lab_found f;
	int r = pl_lab_find(&f, what, &diag);
	int code = r < 0 ? say(r, &diag) : check_found(&f, &diag);

	pl_lab_found_done(&f);
	return code;
}

static int execute(const char *const *words_in, size_t n)
{
	const char *argv[256] = { "sh" };
	struct pl_diag diag = { .text = "" };
	struct pl_lab_found f;
	int r = pl_lab_find(&f, words_in[0], &diag), node = -1, code;

	for (size_t i = 2; i < n && i < 256 - 1 + 2; i++)
		argv[i - 2] = words_in[i];
	if (r == 0)
		node = r = pl_lab_find_node(&f.topology, words_in[1], &diag);
	if (r >= 0)
		r = pl_lab_exec(&f, (unsigned int)node, (char *const *)(uintptr_t)argv, &diag);
	code = r < 0 ? say(r, &diag) : r;
	pl_lab_found_done(&f);
	return code;
}

static int ask(const char *what, const char *const *request, size_t n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_buf out = { 0 };
	struct pl_lab_found f;
	int r = pl_lab_find(&f, what, &diag), code;

	if (r == 0)
		r = pl_lab_ask(&f, request, (unsigned int)n, &out, &diag);
	pl_lab_found_done(&f);
	if (r == 0)
		return pl_stdout_all(&out);
	pl_buf_done(&out);
	code = say(r, &diag);
	return code == PL_EXIT_CONFIG ? PL_EXIT_USAGE : code;
}

/* FILE LINK KEY=VALUE…, as the lab takes it. */
static int impair(const char *const *given, size_t n)
{
	const char *request[64] = { "impair" };

	for (size_t i = 1; i < n && i < 64; i++)
		request[i] = given[i];
	return ask(given[0], request, n);
}

static int truth(const char *what)
{
	const char *const request[] = { "truth" };

	return ask(what, request, 1);
}

/* Checks the numbers that belong to a kind of traffic. Returns 0, or prints the error and returns
 * an exit code. */
static int make_traffic(struct pl_lab_traffic *t, const char *kind)
{
	unsigned int k = pl_opt_place(pl_lab_traffic_kinds, kind);
	const bool dns = k == PL_LAB_DNS;

	if (pl_lab_traffic_kinds[k] == NULL)
		return pl_fail(PL_EXIT_USAGE,
			"lab traffic: no kind '%s': bulk, udp, onoff, incast, request or dns",
			kind);
	t->kind = (enum pl_lab_traffic_kind)k;
	t->duration_ns = args.duration_ns;
	t->on_ns = args.on_ns;
	t->off_ns = args.off_ns;
	t->rate_bps = (uint64_t)args.rate;
	t->size = (uint32_t)(args.size != 0 ? args.size : dns ? 200 : 1000);
	if (args.rate < 1000 || args.rate > 1e11 || args.size > 65000 || t->size < 20 ||
		t->duration_ns == 0 || t->on_ns == 0)
		return pl_fail(PL_EXIT_USAGE,
			"lab traffic: --rate is from 1k to 100G, --size from 20 to 65000, and no time is 0");
	return 0;
}

/* FILE KIND FROM… TO */
static int traffic(const char *const *given, size_t n)
{
	struct pl_lab_traffic_account accounts[PL_LAB_SENDERS_MAX + 1];
	struct pl_diag diag = { .text = "" };
	struct pl_lab_traffic t = { .n_from = 0 };
	struct pl_buf out = { 0 };
	struct pl_lab_found f;
	int code = make_traffic(&t, given[1]), r;

	if (code != 0)
		return code;
	r = pl_lab_find(&f, given[0], &diag);
	for (size_t i = 2; i < n && r >= 0; i++) {
		r = pl_lab_find_node(&f.topology, given[i], &diag);
		if (i + 1 == n)
			t.to = (unsigned int)r;
		else
			t.from[t.n_from++] = (unsigned int)r;
	}
	if (r >= 0)
		r = pl_lab_traffic_run(&f, &t, accounts, &diag);
	if (r >= 0)
		pl_lab_traffic_show(&f.topology, &t, accounts, is_json(), &out);
	code = r < 0 ? say(r, &diag) : pl_stdout_all(&out);
	pl_lab_found_done(&f);
	return code;
}

/* FILE is missing, of a lab that is up already or, for `up`, will be. */
static void ask_for_lab(const char *word)
{
	struct pl_buf names = { 0 };

	if (strcmp(word, "up") == 0) {
		pl_complain(
			"lab up: missing FILE: a file that describes a lab, a shape such as leaf-spine:2x2x2, or a network such as dta");
		return;
	}
	pl_lab_names(&names);
	if (names.len == 0)
		pl_complain(
			"lab %s: missing FILE: the file or the name of a lab that is up; none is, 'pathline lab up FILE' builds one",
			word);
	else
		pl_complain(
			"lab %s: missing FILE: the file or the name of a lab that is up; up now: %.*s",
			word, (int)names.len, (const char *)names.data);
	pl_buf_done(&names);
}

static int check_given(const char *word, size_t n)
{
	const char *form = strcmp(word, "exec") == 0      ? "exec FILE NODE [COMMAND…]"
			   : strcmp(word, "impair") == 0  ? "impair FILE LINK KEY=VALUE…"
			   : strcmp(word, "traffic") == 0 ? "traffic FILE KIND FROM… TO"
							  : NULL;
	const size_t least = strcmp(word, "impair") == 0 ? 4 : strcmp(word, "traffic") == 0 ? 5 : 3;

	if (words[pl_opt_place(words, word)] == NULL) {
		const char *near = pl_nearest(word, words, sizeof(words) / sizeof(words[0]) - 1);

		return pl_fail(PL_EXIT_USAGE,
			"lab needs one of: up, down, show, check, apply, exec, impair, truth, traffic%s%s%s",
			near != NULL ? "; did you mean " : "", near != NULL ? near : "",
			near != NULL ? "?" : "");
	}
	if (n == 1) {
		ask_for_lab(word);
		return PL_EXIT_USAGE;
	}
	if (n == 2 && strcmp(word, "exec") == 0)
		return pl_fail(PL_EXIT_USAGE,
			"lab exec: missing NODE: a node of the lab; 'pathline lab show FILE' lists them");
	if (form != NULL ? n < least || n > (least > 3 ? 60 : 200) : n != 2)
		return pl_fail(PL_EXIT_USAGE, "usage: pathline lab %s%s",
			form != NULL ? form : word, form != NULL ? "" : " FILE");
	if ((args.dry_run || args.tier != NULL) && strcmp(word, "up") != 0)
		return pl_fail(PL_EXIT_USAGE, "lab %s: --%s applies to up only", word,
			args.dry_run ? "dry-run" : "tier");
	return 0;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	const char *word;
	int code;

	memset(&args, 0, sizeof(args));
	args.form = pl_arg_text_or_json[0];
	args.duration_ns = UINT64_C(5000000000);
	args.rate = 1e6;
	args.on_ns = 10000000;
	args.off_ns = 90000000;
	if (pl_command_parse(&pl_command_lab, argc, argv, &operands, &code) != 0)
		return code;
	word = operands.n > 0 ? operands.items[0] : "";
	code = check_given(word, operands.n);
	if (code == 0)
		code = strcmp(word, "up") == 0        ? up(operands.items[1])
		       : strcmp(word, "down") == 0    ? down(operands.items[1])
		       : strcmp(word, "show") == 0    ? show(operands.items[1])
		       : strcmp(word, "check") == 0   ? check(operands.items[1])
		       : strcmp(word, "apply") == 0   ? apply(operands.items[1])
		       : strcmp(word, "exec") == 0    ? execute(operands.items + 1, operands.n - 1)
		       : strcmp(word, "truth") == 0   ? truth(operands.items[1])
		       : strcmp(word, "traffic") == 0 ? traffic(operands.items + 1, operands.n - 1)
						      : impair(operands.items + 1, operands.n - 1);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_lab = {
	.name = "lab",
	.summary = "build a network on this machine: hosts, switches with INT, links with faults",
	.usage =
		"up|down|show|check|apply|truth FILE | exec FILE NODE… | impair FILE LINK… | traffic FILE…",
	.description =
		"up builds the network that FILE describes, each node in a network namespace of its own,\n"
		"and returns when it is there. Instead of a file, a shape with parameters: line:N, diamond,\n"
		"leaf-spine:LxSxH (leaves, spines, hosts of a leaf) or wan-ring:N, or a published network:\n"
		"dta, intcollector, marking, marking-multiplexed, p4-to-rdma. Addresses of IPv4 and IPv6 and all\n"
		"routes follow from the file (docs/guide/lab.md); every link between two nodes is an interface\n"
		"that has the peer's name.\n"
		"With --dry-run it prints every step as a command of the shell, and does nothing.\n"
		"\n"
		"Switches forward by pathline switch, with INT, and report to the node collector, which the lab\n"
		"adds (\"telemetry: none\" in the file: without): pathline lab exec FILE collector -- pathline top.\n"
		"\n"
		"As root the namespaces are called LAB-NODE, as ip netns shows them. Without root the lab is\n"
		"in a user namespace. Where neither may be made, as in most containers, up says so and the\n"
		"network is simulated: the same switches, links and hosts in simulated time, by the clock, whose\n"
		"reports go to a real collector; no programs run in its nodes. --tier chooses one of the three.\n"
		"\n"
		"The file may have a story: links impaired and restored, traffic started and stopped by time.\n"
		"\n"
		"exec FILE NODE [--] [COMMAND…] runs a command in a node, or a shell, and exits with its code.\n"
		"show prints nodes, addresses and links of a lab that is up, its commands with their accounts, and\n"
		"those that ended. check waits until commands that end by themselves have, ends the others, the last\n"
		"first, so that nothing is lost on the way, and says whether what they did is right: by the commands\n"
		"that the file has for that, and by the accounts of generators, translator and collectors. down ends\n"
		"its commands and removes all that it has. Labs that were killed leave nothing that the next\n"
		"call does not remove.\n"
		"All of them take the file, or the name of the lab.\n"
		"\n"
		"apply FILE has the lab that is up become what FILE says now, while packets flow: links, also\n"
		"those that impair changed, costs, INT and marking of switches, which read their files again,\n"
		"commands (those that came, went or changed are started and ended, others go on), the story,\n"
		"which begins anew when it is another. It says what it changed. Nodes, links and addresses stay:\n"
		"for others it changes nothing and says so.\n"
		"\n"
		"impair FILE LINK KEY=VALUE… changes a link while packets flow: rate, queue, delay, jitter,\n"
		"jitter_reorders, loss, to_bad, to_good, bad_loss, lose, duplicate, copy, corrupt, reorder,\n"
		"hold, reorder_time, down.\n"
		"LINK is A-B for both directions, A>B for that from A to B. truth prints a JSON object for\n"
		"each direction of each link: packets that came, waited, were lost by cause, arrived; of a simulated\n"
		"lab of each flow, too. FOLDER/truth, with the folder that show names, has records of it for pathline\n"
		"query: an event for each packet that was dropped or lost between nodes (FOLDER/truth-NODE: by a\n"
		"switch), in a simulated lab also a path for each packet; and what truth printed last, as the\n"
		"streams truth_links and truth_flows.\n"
		"\n"
		"traffic FILE KIND FROM… TO sends with real sockets, to port 5201, and prints how much each\n"
		"node sent and received: bulk (TCP, as much as goes), udp (constant rate), onoff, incast (all senders\n"
		"at the same moments), request (TCP, one answer after the other), dns (UDP questions).\n"
		"\n"
		"Exit codes: 0; 1 a step failed, a name is taken, the lab is not up, apply: a command did not\n"
		"start, or check: an answer is wrong or accounts do not close; 69 the kernel or this build\n"
		"cannot do what the file wants; 77 a privilege is missing; 78 the file is wrong; exec: that of\n"
		"the command.",
	.examples = "  pathline lab up leaf-spine:4x2x2\n"
		    "  pathline lab exec leaf-spine h1 -- ping -c 3 10.1.7.1\n"
		    "  pathline lab show leaf-spine\n"
		    "  pathline lab impair leaf-spine leaf1-spine2 delay=5ms loss=0.01\n"
		    "  pathline lab apply ./office.yaml\n"
		    "  pathline lab truth leaf-spine\n"
		    "  pathline lab traffic leaf-spine incast h1 h3 h5 h8 --rate 50M\n"
		    "  pathline lab down leaf-spine\n"
		    "  pathline lab up dta && pathline lab check dta; pathline lab down dta\n"
		    "  pathline lab up --dry-run network.yaml\n",
	.options = options,
	.words = words,
	.run = run,
};
