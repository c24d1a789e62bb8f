/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the commands that run in nodes from a lab's file. */
#include "lab/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/topology.h"

/* clang-format off */
const struct pl_conf_row pl_lab_run_rows[] = {
	{ .key = "node", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_run_conf, node), .required = true, .def = "h1",
	  .help = "Name of the node." },
	{ .key = "command", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_run_conf, command), .required = true, .def = "pathline listen udp://:32766",
	  .help = "Command of the shell." },
	{ .key = "name", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_run_conf, name), .check = pl_lab_check_name,
	  .help = "Name of the command: its output goes to NAME.log in the lab's folder, and show lists it." },
	{ .key = "ready", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_run_conf, ready),
	  .help = "Text that the command prints as soon as other commands can use it: the next ones start after that. lab check ends the command after those behind it." },
	{ .key = "account", .type = PL_CONF_BOOL, .offset = offsetof(struct pl_lab_run_conf, account), .def = "false",
	  .help = "The command prints its account on SIGUSR1 and at its end, as translate, collect and gen dta do; show and check use it." },
	{ .key = "check", .type = PL_CONF_STRING, .offset = offsetof(struct pl_lab_run_conf, check),
	  .help = "Shell command by which lab check checks the results of the command; exit code 0: they are right." },
	{ 0 },
};
/* clang-format on */

/* Appends a command. The pointer is valid until the next add; NULL without memory. */
static struct pl_lab_command *add(struct pl_lab_topology *t, unsigned int node)
{
	struct pl_lab_command *more = realloc(t->commands, (t->n_commands + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	t->commands = more;
	more[t->n_commands] = (struct pl_lab_command){ .node = node };
	return &more[t->n_commands++];
}

/* Moves the string out of *from. */
static char *take(char **from)
{
	char *text = *from;

	*from = NULL;
	return text;
}

int pl_lab_run_add(
	struct pl_lab_topology *t, unsigned int node, const struct pl_conf_list *commands)
{
	char **texts = commands->items;

	for (size_t i = 0; i < commands->n; i++) {
		struct pl_lab_command *c = add(t, node);

		if (c == NULL)
			return -ENOMEM;
		c->text = take(&texts[i]);
	}
	return 0;
}

static int refuse(struct pl_diag *diag, const char *text, const char *name)
{
	pl_diag_set(diag, text, name);
	return -EINVAL;
}

/* Checks an entry. Names of commands and nodes must differ: both name a log in the lab's folder. */
static int check(const struct pl_lab_topology *t, const struct pl_lab_run_conf *c,
	const char **ret_key, struct pl_diag *diag)
{
	*ret_key = "command";
	if (c->name == NULL && (c->ready != NULL || c->check != NULL || c->account))
		return refuse(diag, "a command with ready, account or check has a name, too", NULL);
	if (c->name == NULL)
		return 0;
	*ret_key = "name";
	if (pl_lab_find_node(t, c->name, NULL) >= 0 || strcmp(c->name, PL_LAB_COLLECTOR) == 0 ||
		strcmp(c->name, "keeper") == 0)
		return refuse(diag, "'%s' is the name of a node's log", c->name);
	if (pl_lab_find_command(t, c->name) != NULL)
		return refuse(diag, "'%s' is the name of another command already", c->name);
	return 0;
}

int pl_lab_run_make(struct pl_lab_topology *t, const struct pl_conf_list *conf, size_t *ret_at,
	const char **ret_key, struct pl_diag *diag)
{
	struct pl_lab_run_conf *run = conf->items;

	for (size_t i = 0; i < conf->n; i++) {
		struct pl_lab_command *c;
		int node;

		*ret_at = i;
		*ret_key = "node";
		node = pl_lab_find_node(t, run[i].node, diag);
		if (node < 0 || check(t, &run[i], ret_key, diag) < 0)
			return -EINVAL;
		c = add(t, (unsigned int)node);
		if (c == NULL)
			return -ENOMEM;
		c->name = take(&run[i].name);
		c->text = take(&run[i].command);
		c->ready = take(&run[i].ready);
		c->check = take(&run[i].check);
		c->account = run[i].account;
	}
	return 0;
}
