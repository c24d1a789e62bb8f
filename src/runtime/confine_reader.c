/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives up the rights of commands that only read. */
#include "runtime/confine_reader.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exit_code.h"

/* `more`, unless NULL, adds files that are written. */
static int give_up(const char *const *paths, size_t n,
	int (*more)(void *arg, struct pl_confine *confine), void *arg)
{
	const struct pl_privilege_options options = { .user = NULL };
	struct pl_diag diag = { .text = "" };
	struct pl_confine c;
	int r = 0;

	pl_confine_init(&c, &options);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = pl_confine_path(&c, paths[i], false);
	if (r == 0 && more != NULL)
		r = more(arg, &c);
	if (r == 0)
		r = pl_confine(&c, &diag);
	if (r < 0 && diag.text[0] == '\0')
		pl_diag_set(&diag, "%s", strerror(-r));
	if (r < 0)
		pl_complain_diag(&diag);
	else if (pl_confine_gap(&c) != NULL)
		pl_complain("%s", pl_confine_gap(&c));
	pl_confine_end(&c);
	return r == 0 ? 0 : r == -EPERM || r == -EACCES ? PL_EXIT_PRIVILEGE : PL_EXIT_FAILED;
}

int pl_confine_reader(const char *const *paths, size_t n)
{
	return give_up(paths, n, NULL, NULL);
}

int pl_client_confine_writer(const struct pl_client_args *args,
	int (*files)(void *arg, struct pl_confine *confine), void *arg)
{
	const char *const paths[] = { args->ca, args->cert, args->key, args->password_file,
		args->token_file };

	return give_up(paths, sizeof(paths) / sizeof(paths[0]), files, arg);
}

int pl_confine_terminal(struct pl_confine *c)
{
	const char *home = getenv("HOME");
	char terminals[PATH_MAX] = "";
	int r = pl_confine_path(c, getenv("TERMINFO"), false);

	/* Only if it exists: a missing path would count as its folder. */
	if (home != NULL && snprintf(terminals, sizeof(terminals), "%s/.terminfo", home) > 0 &&
		access(terminals, R_OK | X_OK) == 0 && r == 0)
		r = pl_confine_path(c, terminals, false);
	return r;
}

static int add_terminal(void *arg, struct pl_confine *c)
{
	(void)arg;
	return pl_confine_terminal(c);
}

int pl_client_confine(const struct pl_client_args *args, const char *folder)
{
	const char *const paths[] = { args->ca, args->cert, args->key, args->password_file,
		args->token_file, folder };

	return give_up(paths, sizeof(paths) / sizeof(paths[0]), add_terminal, NULL);
}
