/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes a running lab to match another topology file. */
#include "lab/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/conf_tree.h"
#include "base/file.h"
#include "lab/change.h"
#include "lab/control.h"
#include "lab/plan.h"

#define BEGIN "apply." /* prefix of the request's file name in the lab's folder */

/* ---- asking ---- */

/* Checks everything that can be checked without the running lab. */
static int check(const struct pl_lab_found *f, struct pl_lab_topology *want, struct pl_diag *diag)
{
	struct pl_lab_plan plan;
	int r = pl_lab_topology_add_collector(want, diag);

	if (r == 0)
		r = pl_lab_change_check(&f->topology, want, f->tier == PL_LAB_SIMULATED, diag);
	if (r == 0)
		r = pl_lab_plan_make(&plan, want, diag);
	if (r == 0)
		pl_lab_plan_done(&plan);
	return r;
}

int pl_lab_apply(const struct pl_lab_found *f, struct pl_lab_topology *want, struct pl_buf *out,
	struct pl_diag *diag)
{
	char path[PL_LAB_FOLDER_MAX + 32], file[32];
	const char *const words[] = { "apply", file };
	int r = check(f, want, diag);

	if (r < 0)
		return r;
	snprintf(file, sizeof(file), BEGIN "%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", f->folder, file);
	r = pl_file_replace(path, want->text, strlen(want->text), 0600);
	if (r < 0) {
		pl_diag_set(diag, "%s: %s", path, strerrordesc_np(-r));
		return r;
	}
	r = pl_lab_ask(f, words, 2, out, diag);
	(void)unlink(path);
	/* The file itself was checked above, so this error is the lab's. */
	return r == -EINVAL ? -ECHILD : r;
}

/* ---- asked ---- */

int pl_lab_apply_read(struct pl_lab_topology **ret, const char *lab, const char *file,
	bool with_collector, struct pl_diag *diag)
{
	struct pl_lab_topology *t = calloc(1, sizeof(*t));
	char *text = NULL;
	size_t len;
	int r;

	*ret = t;
	if (t == NULL)
		return -ENOMEM;
	if (strncmp(file, BEGIN, strlen(BEGIN)) != 0 || strchr(file, '/') != NULL) {
		pl_diag_set(diag, "no file of the lab's");
		return -EINVAL;
	}
	r = pl_file_read(file, PL_CONF_TEXT_MAX, &text, &len);
	(void)unlink(file);
	if (r < 0)
		return r;
	r = pl_lab_topology_parse(t, lab, text, len, diag);
	t->text = text;
	snprintf(t->name, sizeof(t->name), "%s", lab);
	return r == 0 && with_collector ? pl_lab_topology_add_collector(t, diag) : r;
}

int pl_lab_apply_note(const struct pl_lab_topology *t)
{
	return pl_file_replace("topology", t->text, strlen(t->text), 0600);
}
