/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, watches and stops the parts of a chain. */
#include "chain/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/region.h"
#include "runtime/signals.h"

#define ALLOW_MAX  PL_DTA_CONF_ALLOW_MAX
#define PATH_BYTES PL_DTA_PATH_BYTES
#define START_NS   UINT64_C(30000000000)  /* for a part to be ready */
#define STOP_NS    UINT64_C(120000000000) /* for it to end when it is asked to */
#define TICK_MS    200

static volatile sig_atomic_t stop, asked, turn;

static void on_signal(int signo)
{
	if (signo == SIGUSR1)
		asked = 1;
	else if (signo == SIGUSR2)
		turn = 1;
	else
		stop = 1;
}

static struct pl_dta_process *translator_of(struct pl_chain *c)
{
	return &c->parts[c->n_collectors];
}

/* ---- what is wanted ---- */

/* The only one of a laboratory, written by `translator`. */
static void set_collector(
	struct pl_chain *c, const char *interface, const char *listen, const char *translator)
{
	c->lab_allow = (char *)(uintptr_t)translator;
	c->lab_collector = (struct pl_dta_conf_collector){ .name = (char *)(uintptr_t) "c1",
		.interface = (char *)(uintptr_t)interface,
		.listen = (char *)(uintptr_t)listen,
		.allow = { .items = &c->lab_allow, .n = 1 } };
	c->collectors = &c->lab_collector;
	c->n_collectors = 1;
}

int pl_chain_load(struct pl_chain *c, const struct pl_chain_options *o, struct pl_diag *diag)
{
	int r;

	c->o = o;
	c->lab = (struct pl_dta_lab){ -1, -1 };
	pl_signals_handle(on_signal, (const int[]){ SIGUSR1, SIGUSR2, 0 });
	(void)pl_region_guard();
	if (o->file == NULL)
		r = pl_conf_parse(pl_dta_conf_rows, "demo", pl_dta_conf_demo,
			strlen(pl_dta_conf_demo), &c->conf, diag);
	else
		r = pl_conf_load(pl_dta_conf_rows, o->file, &c->conf, NULL, diag);
	if (r == 0)
		r = pl_dta_conf_check(&c->conf, diag);
	if (r < 0 && diag->file[0] == '\0' && o->file != NULL)
		snprintf(diag->file, sizeof(diag->file), "%s", o->file);
	c->stores = c->conf.stores.items;
	c->n_stores = (unsigned int)c->conf.stores.n;
	c->collectors = c->conf.collectors.items;
	c->n_collectors = (unsigned int)c->conf.collectors.n;
	c->interface = c->conf.interface;
	if (c->conf.lab) {
		set_collector(c, PL_DTA_LAB_INTERFACE, PL_DTA_LAB_COLLECTOR, PL_DTA_LAB_TRANSLATOR);
		c->interface = PL_DTA_LAB_INTERFACE;
	}
	return r;
}

static int enter_lab(struct pl_chain *c, struct pl_diag *diag)
{
	int r = pl_dta_lab_make(&c->lab, diag);

	if (r == -EPERM) {
		pl_say("not root, so no network namespaces: RoCE uses UDP sockets on the loopback");
		set_collector(c, PL_DTA_LOOPBACK_INTERFACE, PL_DTA_LOOPBACK_COLLECTOR,
			PL_DTA_LOOPBACK_ALLOW);
		c->interface = PL_DTA_LOOPBACK_TRANSLATOR;
		return 0;
	}
	if (r < 0)
		return r;
	c->netns[0] = c->lab.collector;
	c->translator_netns = c->lab.translator;
	return 0;
}

static int open_netns(struct pl_chain *c, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < PL_COLLECTORS_MAX; i++)
		c->netns[i] = -1;
	c->translator_netns = -1;
	if (c->conf.lab)
		return enter_lab(c, diag);
	for (unsigned int i = 0; i < c->n_collectors; i++) {
		if (c->collectors[i].netns == NULL)
			continue;
		c->netns[i] = pl_dta_netns_open(c->collectors[i].netns, diag);
		if (c->netns[i] < 0)
			return c->netns[i];
	}
	if (c->conf.netns == NULL)
		return 0;
	c->translator_netns = pl_dta_netns_open(c->conf.netns, diag);
	return c->translator_netns < 0 ? c->translator_netns : 0;
}

static int make_folder(struct pl_chain *c, struct pl_diag *diag)
{
	if (c->conf.folder != NULL) {
		snprintf(c->folder, sizeof(c->folder), "%s", c->conf.folder);
		return 0;
	}
	snprintf(c->folder, sizeof(c->folder), "/dev/shm/pathline-dta-XXXXXX");
	if (mkdtemp(c->folder) == NULL) {
		pl_diag_set(diag, "%s: %s", c->folder, strerror(errno));
		return -errno;
	}
	c->made_folder = true;
	return 0;
}

/* ---- regions ---- */

static int name_regions(struct pl_chain *c, struct pl_diag *diag)
{
	return pl_dta_regions_init(
		&c->regions, &c->conf, c->collectors, c->n_collectors, c->folder, diag);
}

static int judge(struct pl_chain *c, unsigned int n, struct pl_diag *diag)
{
	if (n == 0)
		return 0;
	c->differ = true;
	pl_diag_set(diag, "the regions in %s differ from the file: %u difference%s", c->folder, n,
		n > 1 ? "s" : "");
	return -EINVAL;
}

/* ---- parts ---- */

static void pump(struct pl_chain *c)
{
	pl_dta_process_pump(c->parts, c->n_parts, TICK_MS, !c->o->quiet);
}

/* Until it is ready. -ETIMEDOUT, -ECHILD with diag. */
static int wait_ready(struct pl_chain *c, const struct pl_dta_process *p, struct pl_diag *diag)
{
	const uint64_t end_ns = pl_clock_mono_ns() + START_NS;
	char status[32];

	while (!p->is_ready && !p->ended && stop == 0 && pl_clock_mono_ns() < end_ns)
		pump(c);
	if (p->is_ready)
		return 0;
	if (!p->ended) {
		pl_diag_set(diag, "%s: not ready%s", p->role, stop != 0 ? "" : " in time");
		return -ETIMEDOUT;
	}
	pl_dta_process_status(p, status);
	pl_diag_set(diag, "%s: ended at once (%s): %s", p->role, status, p->last);
	return -ECHILD;
}

static int start(struct pl_chain *c, const char *role, const char *const *argv, int netns,
	const char *ready, struct pl_diag *diag)
{
	return pl_dta_process_start(&c->parts[c->n_parts++], role, argv, netns, ready, diag);
}

static bool has_epochs(const struct pl_chain *c)
{
	for (unsigned int s = 0; s < c->n_stores; s++) {
		if (pl_dta_conf_turns(&c->conf, &c->stores[s]))
			return true;
	}
	return false;
}

static int start_collector(struct pl_chain *c, unsigned int i, struct pl_diag *diag)
{
	const struct pl_dta_conf_collector *k = &c->collectors[i];
	char *const *allow = k->allow.items;
	const char *argv[12 + 2 * ALLOW_MAX + PL_CHAIN_STORES_MAX] = { "collect", "--stats",
		"--read", "--listen", k->listen };
	char role[64], every[32], *named = calloc(c->n_stores, PATH_BYTES + 64);
	size_t n = 5;
	int r;

	if (named == NULL)
		return -ENOMEM;
	if (has_epochs(c)) {
		snprintf(every, sizeof(every), "%" PRIu64 "ns", c->conf.epoch_ns);
		argv[n++] = "--epoch";
		argv[n++] = every;
		argv[n++] = "--keep-epochs";
		argv[n++] = c->folder;
	}
	for (size_t a = 0; a < k->allow.n; a++) {
		argv[n++] = "--allow";
		argv[n++] = allow[a];
	}
	argv[n++] = k->interface;
	for (unsigned int s = 0; s < c->n_stores; s++) {
		char *text = named + (size_t)s * (PATH_BYTES + 64);

		snprintf(text, PATH_BYTES + 64, "%s=%s", c->stores[s].name,
			c->regions.paths[i * c->n_stores + s]);
		argv[n++] = text;
	}
	snprintf(role, sizeof(role), "collector %s", k->name);
	r = pl_dta_process_start(&c->parts[i], role, argv, c->netns[i], "collecting", diag);
	free(named);
	return r;
}

static void write_uri(const struct pl_chain *c, struct pl_buf *uri)
{
	pl_buf_str(uri, "roce://");
	for (unsigned int i = 0; i < c->n_collectors; i++)
		pl_buf_printf(uri, "%s%s", i > 0 ? "," : "", c->collectors[i].listen);
	for (unsigned int s = 0; s < c->n_stores; s++)
		pl_buf_printf(uri, "%c%s", s > 0 ? ',' : '/', c->stores[s].name);
	pl_buf_printf(uri, "?dev=%s&service=%s&dscp=%" PRIu64 "&ecn=%s", c->interface,
		c->conf.service == 1 ? "rc" : "uc", c->conf.dscp, c->conf.ecn ? "on" : "off");
}

static int start_translator(struct pl_chain *c, struct pl_diag *diag)
{
	const char *argv[12 + 64] = { "translate", "--stats" };
	char reporters[24];
	char *const *more = c->conf.options.items;
	struct pl_buf uri;
	size_t n = 2;
	int r;

	pl_buf_init(&uri);
	write_uri(c, &uri);
	if (pl_dta_conf_reporters(&c->conf) > 0) {
		snprintf(reporters, sizeof(reporters), "%" PRIu64, pl_dta_conf_reporters(&c->conf));
		argv[n++] = "--sketch-reporters";
		argv[n++] = reporters;
	}
	for (size_t i = 0; i < c->conf.options.n; i++)
		argv[n++] = more[i];
	argv[n++] = c->conf.listen;
	argv[n++] = uri.data;
	r = uri.failed
		    ? -ENOMEM
		    : start(c, "translator", argv, c->translator_netns, "translating from", diag);
	pl_buf_done(&uri);
	return r;
}

static int start_generators(struct pl_chain *c, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < c->n_stores; s++) {
		const char *argv[24];
		char text[24][24], role[64];

		if (c->stores[s].reports == 0)
			continue;
		pl_dta_check_stream(&c->stores[s], s, c->conf.listen, argv, text);
		snprintf(role, sizeof(role), "generator %s", c->stores[s].name);
		for (uint64_t i = 0; r == 0 && i < c->stores[s].reporters; i++)
			r = start(c, role, argv, c->translator_netns, " packets (", diag);
	}
	return r;
}

static int bring_up(struct pl_chain *c, struct pl_diag *diag)
{
	int r = 0;

	for (; r == 0 && c->n_parts < c->n_collectors; c->n_parts++)
		r = start_collector(c, c->n_parts, diag);
	for (unsigned int i = 0; r == 0 && i < c->n_collectors; i++)
		r = wait_ready(c, &c->parts[i], diag);
	if (r == 0)
		r = start_translator(c, diag);
	if (r == 0)
		r = wait_ready(c, translator_of(c), diag);
	return r == 0 ? start_generators(c, diag) : r;
}

/* Parts that run from `first` on. */
static unsigned int running(const struct pl_chain *c, unsigned int first)
{
	unsigned int n = 0;

	for (unsigned int i = first; i < c->n_parts; i++)
		n += c->parts[i].pid != 0;
	return n;
}

/* A collector goes on on its regions; its account is gone with it. -ECHILD with diag: it was too
 * often, or a translator. */
static int start_again(struct pl_chain *c, unsigned int i, struct pl_diag *diag)
{
	struct pl_dta_process *p = &c->parts[i];
	const unsigned int restarts = p->restarts;
	char status[32];
	int r;

	pl_dta_process_status(p, status);
	pl_diag_set(diag, "%s ended by itself (%s)", p->role, status);
	if (i == c->n_collectors || restarts >= c->conf.restarts)
		return -ECHILD;
	pl_say("%s; starting it again", diag->text);
	if (pl_dta_account_collector(&c->account, p->text.data, NULL) < 0 || !WIFEXITED(p->status))
		c->account.gone++;
	pl_dta_process_done(p);
	memset(p, 0, sizeof(*p));
	r = start_collector(c, i, diag);
	p->restarts = restarts + 1;
	return r == 0 ? wait_ready(c, p, diag) : r;
}

/* Forgotten before it is answered: a signal that comes meanwhile is another one. */
static bool taken(volatile sig_atomic_t *flag)
{
	if (*flag == 0)
		return false;
	*flag = 0;
	return true;
}

static void pass_on_turn(struct pl_chain *c)
{
	for (unsigned int i = 0; i < c->n_collectors; i++) {
		if (c->parts[i].pid != 0 && c->parts[i].is_ready)
			(void)kill(c->parts[i].pid, SIGUSR2);
	}
}

/* Until generators are done, where there are any, the time is over, or somebody says so. -ECHILD: a
 * part is gone. */
static int look_after(struct pl_chain *c, struct pl_diag *diag)
{
	const unsigned int first = c->n_collectors + 1;
	const uint64_t end_ns =
		c->o->duration_ns != 0 ? pl_clock_mono_ns() + c->o->duration_ns : UINT64_MAX;
	struct pl_dta_status status = { .parts = c->parts,
		.n_parts = c->n_parts,
		.n_collectors = c->n_collectors,
		.every_ns = c->o->status_ns,
		.json = c->o->json,
		.print = c->o->print };
	int r = 0;

	pl_dta_status_init(&status, pl_clock_mono_ns());
	while (r == 0 && stop == 0 && pl_clock_mono_ns() < end_ns &&
		(c->n_parts == first || running(c, first) > 0)) {
		pump(c);
		for (unsigned int i = 0; r == 0 && i < first; i++) {
			if (c->parts[i].ended)
				r = start_again(c, i, diag);
		}
		if (taken(&turn) && has_epochs(c))
			pass_on_turn(c);
		pl_dta_status_step(&status, pl_clock_mono_ns(), taken(&asked));
	}
	return r;
}

/* Asks parts [first, end) to end, and waits until they have. */
static int take_down(struct pl_chain *c, unsigned int first, unsigned int end)
{
	const uint64_t until_ns = pl_clock_mono_ns() + STOP_NS;
	unsigned int left = 1;

	for (unsigned int i = first; i < end && i < c->n_parts; i++)
		pl_dta_process_stop(&c->parts[i]);
	while (left > 0 && pl_clock_mono_ns() < until_ns) {
		left = 0;
		for (unsigned int i = first; i < end && i < c->n_parts; i++)
			left += c->parts[i].pid != 0;
		if (left > 0)
			pump(c);
	}
	return left > 0 ? -ETIMEDOUT : 0;
}

/* Against the stream: nothing is under way when the next part ends. */
static int bring_down(struct pl_chain *c)
{
	int r = take_down(c, c->n_collectors + 1, c->n_parts);

	if (r == 0)
		r = take_down(c, c->n_collectors, c->n_collectors + 1);
	return r == 0 ? take_down(c, 0, c->n_collectors) : r;
}

/* ---- what came of it ---- */

static int add_path(struct pl_conf_list *list, const char *path)
{
	char **items = reallocarray(list->items, list->n + 1, sizeof(*items));

	if (items == NULL)
		return -ENOMEM;
	list->items = items;
	items[list->n] = strdup(path);
	if (items[list->n] == NULL)
		return -ENOMEM;
	list->n++;
	return 0;
}

/* A store's regions of all collectors, and files of epochs that ended. */
static int add_paths(const struct pl_chain *c, unsigned int s, struct pl_conf_list *list)
{
	char path[PATH_BYTES + 32];
	int r = 0;

	for (unsigned int i = s; r == 0 && i < c->n_collectors * c->n_stores; i += c->n_stores) {
		r = add_path(list, c->regions.paths[i]);
		pl_dta_regions_epoch(&c->regions, i, 0, path);
		for (uint64_t k = 0; r == 0 && access(path, F_OK) == 0; k++) {
			r = add_path(list, path);
			pl_dta_regions_epoch(&c->regions, i, k + 1, path);
		}
	}
	return r;
}

static int check(struct pl_chain *c, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int s = 0; r == 0 && s < c->n_stores; s++) {
		struct pl_conf_list paths = { NULL, 0 };

		if (c->stores[s].reports > 0) {
			r = add_paths(c, s, &paths);
			if (r == 0)
				r = pl_dta_check(&c->stores[s], c->made[s],
					(const char *const *)paths.items, (unsigned int)paths.n,
					&c->checked[s], diag);
		}
		for (size_t i = 0; i < paths.n; i++)
			free(((char **)paths.items)[i]);
		free(paths.items);
	}
	return r;
}

static int take_accounts(struct pl_chain *c, struct pl_diag *diag)
{
	struct pl_dta_account *a = &c->account;
	int r = pl_dta_account_translator(a, translator_of(c)->text.data, diag);

	for (unsigned int i = 0; r == 0 && i < c->n_collectors; i++)
		r = pl_dta_account_collector(a, c->parts[i].text.data, diag);
	for (unsigned int s = 0, i = c->n_collectors + 1; s < c->n_stores; s++) {
		const uint64_t n = c->stores[s].reports > 0 ? c->stores[s].reporters : 0;

		for (uint64_t k = 0; k < n && i < c->n_parts; k++) {
			uint64_t made;

			pl_dta_account_generator(a, c->parts[i++].said, &made);
			c->made[s] += made;
		}
	}
	pl_dta_account_close(a);
	return r;
}

/* ---- running ---- */

void pl_chain_done(struct pl_chain *c)
{
	for (unsigned int i = 0; i < c->n_parts; i++)
		pl_dta_process_done(&c->parts[i]);
	for (unsigned int i = 0; c->made_folder && !c->o->keep && i < c->regions.n; i++) {
		char path[PATH_BYTES + 32];

		(void)unlink(c->regions.paths[i]);
		pl_dta_regions_epoch(&c->regions, i, 0, path);
		for (uint64_t k = 1; unlink(path) == 0; k++)
			pl_dta_regions_epoch(&c->regions, i, k, path);
	}
	if (c->made_folder && !c->o->keep)
		(void)rmdir(c->folder);
	for (unsigned int i = 0; !c->conf.lab && i < c->n_collectors; i++) {
		if (c->netns[i] > 0)
			close(c->netns[i]);
	}
	if (!c->conf.lab && c->translator_netns > 0)
		close(c->translator_netns);
	pl_dta_lab_done(&c->lab);
	pl_dta_regions_done(&c->regions);
	pl_conf_done(pl_dta_conf_rows, &c->conf);
}

int pl_chain_run(struct pl_chain *c, struct pl_diag *diag)
{
	int r = make_folder(c, diag), down;

	if (r == 0)
		r = name_regions(c, diag);
	if (r == 0)
		r = judge(c, pl_chain_say_differences(c), diag);
	if (r == 0)
		r = open_netns(c, diag);
	if (r == 0)
		r = pl_dta_regions_make(&c->regions, diag);
	if (r < 0)
		return r;
	r = bring_up(c, diag);
	if (r == 0)
		r = look_after(c, diag);
	down = bring_down(c);
	if (r == 0 && down < 0) {
		pl_diag_set(diag, "a process did not end when it was told to");
		r = down;
	}
	if (r == 0)
		r = take_accounts(c, diag);
	return r == 0 ? check(c, diag) : r;
}

/* What up would find: nothing is made or started. */
int pl_chain_check(struct pl_chain *c, struct pl_diag *diag)
{
	struct stat st;
	int r;

	if (c->conf.folder == NULL) {
		pl_say("every run creates new regions: there is nothing to compare");
		return c->o->json ? judge(c, pl_chain_print_regions(c), diag) : 0;
	}
	r = make_folder(c, diag);
	if (r == 0 && (stat(c->folder, &st) < 0 || !S_ISDIR(st.st_mode))) {
		pl_diag_set(diag, "folder: %s does not exist", c->folder);
		r = -ENOENT;
	}
	if (r == 0)
		r = name_regions(c, diag);
	return r < 0 ? r : judge(c, pl_chain_print_regions(c), diag);
}
