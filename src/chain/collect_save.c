/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies the regions of a collector to disk. */
#include "chain/collect_save.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/thread.h"
#include "memory/region.h"
#include "runtime/say.h"

struct pl_collect_save {
	const struct pl_collector *collector;
	const struct pl_collector_options *options;
	const char *folder;
	uint64_t every_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;                          /* under `lock` */
	struct pl_collect_save_stats stats; /* of the thread, until it has ended */
};

static void save_all(struct pl_collect_save *s)
{
	for (uint32_t i = 0; i < s->options->n_stores; i++) {
		struct pl_diag diag = { .text = "" };
		char *path = NULL;
		int r = -ENOMEM;

		if (asprintf(&path, "%s/%s.plr", s->folder, s->options->stores[i].name) > 0) {
			r = pl_region_save(pl_collector_region(s->collector, i), path, &diag);
			free(path);
		}
		if (r == 0) {
			s->stats.saved++;
			continue;
		}
		s->stats.failed++;
		/* Reported once for each cause: a full disk stays full. */
		if (strncmp(s->stats.why, diag.text, sizeof(s->stats.why) - 1) != 0)
			pl_say("%s is not saved: %s", s->options->stores[i].name,
				diag.text[0] != '\0' ? diag.text : strerror(-r));
		snprintf(s->stats.why, sizeof(s->stats.why), "%s", diag.text);
	}
}

static void *run(void *arg)
{
	struct pl_collect_save *s = arg;
	bool stop;

	do {
		const struct timespec until = pl_clock_timespec(pl_clock_mono_ns() + s->every_ns);

		pthread_mutex_lock(&s->lock);
		while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
			;
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		save_all(s);
	} while (!stop);
	return NULL;
}

static int check(const struct pl_collector_options *options, const char *folder, uint64_t every_ns,
	struct pl_diag *diag)
{
	struct stat st;
	int r;

	for (uint32_t i = 0; i < options->n_stores; i++) {
		if (strchr(options->stores[i].name, '/') != NULL)
			return pl_diag_fail(diag, -EINVAL,
				"--save: '%s' cannot be the name of a file",
				options->stores[i].name);
	}
	if (every_ns == 0)
		return pl_diag_fail(diag, -EINVAL, "--save-every must be greater than 0");
	r = stat(folder, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (r != 0)
		pl_diag_set(diag, "--save: %s: %s", folder, strerror(r));
	return -r;
}

int pl_collect_save_open(struct pl_collect_save **ret, const struct pl_collector *c,
	const struct pl_collector_options *options, const char *folder, uint64_t every_ns,
	struct pl_diag *diag)
{
	struct pl_collect_save *s;
	int r = check(options, folder, every_ns, diag);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	*s = (struct pl_collect_save){
		.collector = c, .options = options, .folder = folder, .every_ns = every_ns
	};
	pl_cond_init(&s->wake);
	pthread_mutex_init(&s->lock, NULL);
	r = pl_thread_start(&s->thread, "pl-save", run, s);
	if (r < 0) {
		pl_diag_set(diag, "--save: %s", strerror(-r));
		pthread_cond_destroy(&s->wake);
		pthread_mutex_destroy(&s->lock);
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void pl_collect_save_close(struct pl_collect_save *s, struct pl_collect_save_stats *ret)
{
	*ret = (struct pl_collect_save_stats){ .saved = 0 };
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	*ret = s->stats;
	free(s);
}

void pl_collect_save_stats(struct pl_json *json, const struct pl_collect_save_stats *s)
{
	pl_json_key(json, "save");
	pl_json_object(json);
	pl_json_number(json, "saved", s->saved);
	pl_json_number(json, "failed", s->failed);
	pl_json_object_end(json);
}
