/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a daemon or a history for tables, in a thread of its own. */
#include "show/top_fetch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/thread.h"
#include "show/top_pages.h"

#define PATH_MAX_BYTES 1400

struct pl_top_fetch {
	struct pl_top_source source; /* used by the thread only */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t wake;
	bool stop;
	uint64_t interval_ns;
	unsigned int question, asked; /* asked: the last request that was sent */
	char path[PATH_MAX_BYTES];
	bool has_answer;
	struct pl_top_answer answer;
};

void pl_top_answer_done(struct pl_top_answer *a)
{
	json_decref(a->status);
	json_decref(a->table);
	*a = (struct pl_top_answer){ .code = 0 };
}

void pl_top_source_done(struct pl_top_source *source)
{
	pl_client_free(source->client);
	pl_top_history_close(source->history);
}

void pl_top_fetch_once(
	const struct pl_top_source *source, const char *path, struct pl_top_answer *ret)
{
	const struct pl_top_page *page = pl_top_page_asked(path);

	*ret = (struct pl_top_answer){ .code = 0 };
	if (source->history != NULL && page != NULL) {
		pl_diag_set(&ret->diag, "%s", pl_top_page_without_daemon(page));
		ret->code = PL_EXIT_USAGE;
		return;
	}
	if (source->history != NULL) {
		ret->code = pl_top_history_get(
			source->history, path, &ret->status, &ret->table, &ret->diag);
		return;
	}
	ret->code = pl_client_get(source->client, "/api/v1/status", &ret->status, &ret->diag);
	if (ret->code == 0)
		ret->code = page != NULL
				    ? pl_top_page_get(
					      source->client, page, path, &ret->table, &ret->diag)
				    : pl_client_get(source->client, path, &ret->table, &ret->diag);
}

static void wait_until(struct pl_top_fetch *f, uint64_t deadline_ns)
{
	const struct timespec until = pl_clock_timespec(deadline_ns);

	pthread_cond_timedwait(&f->wake, &f->lock, &until);
}

static void *fetch_loop(void *arg)
{
	struct pl_top_fetch *f = arg;
	uint64_t due_ns = 0;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		struct pl_top_answer got;
		char path[PATH_MAX_BYTES];
		unsigned int question = f->question;

		if (question == 0 || (question == f->asked && pl_clock_mono_ns() < due_ns)) {
			wait_until(f, question == 0 ? pl_clock_mono_ns() + 1000000000u : due_ns);
			continue;
		}
		memcpy(path, f->path, sizeof(path));
		f->asked = question;
		pthread_mutex_unlock(&f->lock);
		pl_top_fetch_once(&f->source, path, &got);
		got.question = question;
		pthread_mutex_lock(&f->lock);
		if (f->has_answer)
			pl_top_answer_done(&f->answer);
		f->answer = got;
		f->has_answer = true;
		due_ns = pl_clock_mono_ns() + f->interval_ns;
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int pl_top_fetch_new(
	struct pl_top_fetch **ret, const struct pl_top_source *source, uint64_t interval_ns)
{
	struct pl_top_fetch *f = calloc(1, sizeof(*f));
	int r;

	if (f == NULL) {
		struct pl_top_source theirs = *source;

		pl_top_source_done(&theirs);
		return -ENOMEM;
	}
	f->source = *source;
	f->interval_ns = interval_ns;
	pthread_mutex_init(&f->lock, NULL);
	pl_cond_init(&f->wake);
	r = pl_thread_start(&f->thread, "pl-fetch", fetch_loop, f);
	f->running = r == 0;
	if (r < 0) {
		pl_top_fetch_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void pl_top_fetch_free(struct pl_top_fetch *f)
{
	if (f == NULL)
		return;
	if (f->running) {
		pthread_mutex_lock(&f->lock);
		f->stop = true;
		pthread_cond_signal(&f->wake);
		pthread_mutex_unlock(&f->lock);
		/* The thread may wait for an answer, which has a time-out. */
		pthread_join(f->thread, NULL);
	}
	if (f->has_answer)
		pl_top_answer_done(&f->answer);
	pl_top_source_done(&f->source);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

unsigned int pl_top_fetch_ask(struct pl_top_fetch *f, const char *path)
{
	unsigned int question;

	pthread_mutex_lock(&f->lock);
	snprintf(f->path, sizeof(f->path), "%s", path);
	question = ++f->question;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	return question;
}

void pl_top_fetch_set_interval(struct pl_top_fetch *f, uint64_t interval_ns)
{
	pthread_mutex_lock(&f->lock);
	f->interval_ns = interval_ns;
	pthread_mutex_unlock(&f->lock);
}

bool pl_top_fetch_take(struct pl_top_fetch *f, struct pl_top_answer *ret)
{
	bool has;

	pthread_mutex_lock(&f->lock);
	has = f->has_answer;
	if (has)
		*ret = f->answer;
	f->has_answer = false;
	pthread_mutex_unlock(&f->lock);
	return has;
}
