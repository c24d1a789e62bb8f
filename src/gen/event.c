/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the events of a generated network from text. */
#include "gen/event.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

static const struct kind {
	const char *name;
	double value; /* default */
} kinds[PL_GEN_EVENT_KIND_MAX] = {
	[PL_GEN_EVENT_PATH] = { "path", 0 },
	[PL_GEN_EVENT_QUEUE] = { "queue", 40000 },
	[PL_GEN_EVENT_LOSS] = { "loss", 0.5 },
	[PL_GEN_EVENT_DROP] = { "drop", 0.1 },
	[PL_GEN_EVENT_RESTART] = { "restart", 0 },
};

static int parse_u32(const char *text, uint32_t max, uint32_t *ret)
{
	uint64_t v;

	if (pl_parse_u64(text, &v) < 0 || v > max)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int parse_share(const char *text, double *ret)
{
	double v;

	if (pl_parse_double(text, &v) < 0 || v < 0 || v > 1)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int set(struct pl_gen_event *e, const char *key, char *value)
{
	uint32_t n;
	char *dash;

	if (strcmp(key, "every") == 0)
		return pl_parse_duration(value, &e->every_ns);
	if (strcmp(key, "node") == 0 && e->kind != PL_GEN_EVENT_PATH)
		return parse_u32(value, UINT32_MAX, &e->node);
	switch (e->kind) {
	case PL_GEN_EVENT_PATH:
		dash = strchr(value, '-');
		if (strcmp(key, "link") != 0 || dash == NULL)
			return -EINVAL;
		*dash = '\0';
		return parse_u32(value, UINT32_MAX, &e->link_a) < 0 ||
				       parse_u32(dash + 1, UINT32_MAX, &e->link_b) < 0
			       ? -EINVAL
			       : 0;
	case PL_GEN_EVENT_QUEUE:
		if (strcmp(key, "depth") == 0)
			return pl_parse_double(value, &e->value) < 0 || e->value < 0 ? -EINVAL : 0;
		if (strcmp(key, "port") == 0)
			return parse_u32(value, UINT16_MAX, &e->port);
		if (strcmp(key, "queue") != 0 || parse_u32(value, UINT8_MAX, &n) < 0)
			return -EINVAL;
		e->queue = (int32_t)n;
		return 0;
	case PL_GEN_EVENT_DROP:
		if (strcmp(key, "reason") == 0) {
			if (parse_u32(value, UINT8_MAX, &n) < 0)
				return -EINVAL;
			e->reason = (uint8_t)n;
			return 0;
		}
		return strcmp(key, "ratio") == 0 ? parse_share(value, &e->value) : -EINVAL;
	case PL_GEN_EVENT_LOSS:
		return strcmp(key, "ratio") == 0 ? parse_share(value, &e->value) : -EINVAL;
	case PL_GEN_EVENT_RESTART:
	case PL_GEN_EVENT_KIND_MAX:
		break;
	}
	return -EINVAL;
}

static int parse_kind(struct pl_gen_event *e, const char *name)
{
	for (int k = 0; k < PL_GEN_EVENT_KIND_MAX; k++) {
		if (strcmp(name, kinds[k].name) == 0) {
			e->kind = (enum pl_gen_event_kind)k;
			e->value = kinds[k].value;
			return 0;
		}
	}
	return -EINVAL;
}

int pl_gen_event_parse(struct pl_gen_event *ret, const char *text, struct pl_diag *diag)
{
	struct pl_gen_event e = { .queue = -1, .reason = 80 };
	char copy[160], *at, *args, *plus, *save = NULL;
	size_t len = strlen(text);

	if (len >= sizeof(copy))
		goto bad;
	memcpy(copy, text, len + 1);
	at = strchr(copy, '@');
	if (at == NULL)
		goto bad;
	*at++ = '\0';
	args = strchr(at, ':');
	if (args != NULL)
		*args++ = '\0';
	plus = strchr(at, '+');
	if (plus != NULL)
		*plus++ = '\0';
	if (parse_kind(&e, copy) < 0 || pl_parse_duration(at, &e.at_ns) < 0 ||
		(plus != NULL && pl_parse_duration(plus, &e.duration_ns) < 0))
		goto bad;
	for (char *arg = args == NULL ? NULL : strtok_r(args, ",", &save); arg != NULL;
		arg = strtok_r(NULL, ",", &save)) {
		char *value = strchr(arg, '=');

		if (value == NULL)
			goto bad;
		*value++ = '\0';
		if (set(&e, arg, value) < 0) {
			pl_diag_set(diag,
				"event \"%.80s\": \"%.40s\" is not a key of %s, or its value is bad",
				text, arg, kinds[e.kind].name);
			return -EINVAL;
		}
	}
	*ret = e;
	return 0;
bad:
	pl_diag_set(diag,
		"\"%.80s\" is not an event: KIND@START[+DURATION][:KEY=VALUE,…] with KIND path, queue, "
		"loss, drop or restart",
		text);
	return -EINVAL;
}

void pl_gen_story(struct pl_gen_cfg *cfg)
{
	static const char *const story[] = {
		"path@5s+20s:every=60s",
		"queue@10s+8s:every=60s",
		"loss@16s+2s:every=60s,ratio=0.5",
	};

	for (size_t i = 0; i < sizeof(story) / sizeof(story[0]); i++) {
		int r;

		assert(cfg->n_events < PL_GEN_EVENTS_MAX);
		r = pl_gen_event_parse(&cfg->events[cfg->n_events++], story[i], NULL);
		assert(r == 0);
		(void)r;
	}
}
