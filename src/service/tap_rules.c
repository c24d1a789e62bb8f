/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads rules of a tap from a file, and applies them. */
#include "service/tap_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/say.h"
#include "service/tap.h"
#include "service/tap_places.h"
#include "service/tap_state.h"
#include "tap/source.h"

#define LINE_BYTES 1024

static int read_line(struct pl_tap_rules *rules, char *line, const char *path, unsigned int n,
	struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	int r;

	if (strchr(line, '\n') == NULL && strlen(line) == LINE_BYTES - 1) {
		pl_diag_set(
			diag, "%s:%u: a rule has at most %d characters", path, n, LINE_BYTES - 2);
		return -EINVAL;
	}
	line[strcspn(line, "\r\n")] = '\0';
	line += strspn(line, " \t");
	if (line[0] == '\0' || line[0] == '#')
		return 0;
	r = pl_tap_rules_add(rules, line, &why);
	if (r < 0)
		pl_diag_set(diag, "%s:%u: %s", path, n, why.text);
	return r;
}

int pl_tap_rules_read(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag)
{
	const uint32_t before = rules->n;
	FILE *f = fopen(path, "re");
	char line[LINE_BYTES];
	int r = 0;

	if (f == NULL) {
		r = -errno;
		pl_diag_set(diag, "%s: %s", path, strerror(-r));
		return r;
	}
	for (unsigned int n = 1; r == 0 && fgets(line, sizeof(line), f) != NULL; n++)
		r = read_line(rules, line, path, n, diag);
	if (r == 0 && ferror(f)) {
		r = -EIO;
		pl_diag_set(diag, "%s: %s", path, strerror(-r));
	}
	fclose(f);
	if (r < 0)
		rules->n = before;
	return r;
}

int pl_tap_rules_read_again(struct pl_tap_rules *rules, const char *path, struct pl_diag *diag)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		pl_diag_set(diag, "%s is no regular file, so its rules cannot be read again", path);
		return -EINVAL;
	}
	return pl_tap_rules_read(rules, path, diag);
}

bool pl_tap_rules_look_inside(const struct pl_tap_rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++) {
		if (rules->words[i].n > 0)
			return true;
	}
	return false;
}

static bool ask_for_direction(const struct pl_tap_rules *rules)
{
	for (uint32_t i = 0; i < rules->n; i++) {
		if ((rules->rules[i].obs_mask & PL_OBS_OUT) != 0)
			return true;
	}
	return false;
}

int pl_tap_rules_fit(const struct pl_tap_rules *rules, const char *source, struct pl_diag *diag)
{
	const bool drops = pl_tap_drops_is(source), kernel = pl_tap_kernel_is(source);

	if (drops && ask_for_direction(rules)) {
		pl_diag_set(diag, "the kernel does not tell the direction of packets that it "
				  "drops: leave dir= out of rules for drops:");
		return -EINVAL;
	}
	if ((drops || kernel || pl_tap_source_is_tmpkt(source)) &&
		pl_tap_rules_look_inside(rules)) {
		pl_diag_set(diag,
			"contains= in a rule: %s does not give payloads to user space; packet:, "
			"afxdp: and capture files do",
			source);
		return -EINVAL;
	}
	return 0;
}

int pl_tap_service_rules_fit(
	const struct pl_tap_service *t, const struct pl_tap_rules *rules, struct pl_diag *diag)
{
	for (size_t i = 0; i < t->o->n_sources; i++) {
		const int r = pl_tap_rules_fit(rules, t->o->sources[i], diag);

		if (r < 0)
			return r;
	}
	if (t->whole || !pl_tap_rules_look_inside(rules))
		return 0;
	pl_diag_set(diag, "contains= needs whole packets, and the sockets copy their headers only: "
			  "they copy the rest when a rule has contains= at the start");
	return -EINVAL;
}

void pl_tap_service_rules(
	struct pl_tap_service *t, const struct pl_tap_rules *rules, uint16_t point)
{
	t->tap.rules = *rules;
	if (t->point != point) {
		t->point = point;
		pl_tap_state_points(t);
	}
	for (unsigned int i = 0; i < t->n_kernels; i++)
		pl_tap_kernel_rules(
			t->kernels[i], rules, pl_tap_place_point(t, t->kernel_sources[i], point));
	for (unsigned int i = 0; i < t->n_drops; i++)
		pl_tap_drops_rules(t->drops[i], rules, point);
}

void pl_tap_rules_reload(void *s)
{
	struct pl_tap_service *t = s;
	struct pl_tap_rules rules = t->o->rules;
	struct pl_diag diag = { .text = "" };

	if (t->o->rules_file == NULL) {
		pl_say("there is nothing to read again: no rules were given by --rules");
		return;
	}
	if (pl_tap_rules_read_again(&rules, t->o->rules_file, &diag) < 0 ||
		pl_tap_service_rules_fit(t, &rules, &diag) < 0) {
		pl_say("the rules stay as they are: %s", diag.text);
		return;
	}
	pl_tap_service_rules(t, &rules, t->point);
	pl_say("rules of %s are in force: %u%s", t->o->rules_file, (unsigned int)rules.n,
		rules.n == 0 ? ", so all packets are taken" : "");
}
