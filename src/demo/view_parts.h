/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the view, for its files. */
#pragma once

#include <pthread.h>
#include <termios.h>

#include "demo/view.h"

enum {
	LINES_MAX = 64,
	LINE_MAX_BYTES = 160,
	PATHS_MAX = 512,
	NODES_TEXT = 48,
	DROP_NODES = 8, /* switches of the network have 1 to 6, ports as few */
	/* Beside the kinds of events. */
	KIND_LINK_LOSS = PL_EVENT_KIND_MAX,
	KINDS,
};
struct pl_demo_line {
	uint64_t at_ns; /* monotonic */
	uint64_t last_ns;
	uint8_t kind, phase;
	uint64_t place; /* what makes two events one line */
	unsigned int count;
	uint64_t value; /* the largest, or for losses the sum */
	char what[LINE_MAX_BYTES];
};

struct known_path {
	uint64_t path_id;
	char nodes[NODES_TEXT];
};

struct pl_demo_view {
	pthread_mutex_t lock;
	uint64_t began_ns;
	struct pl_demo_line lines[LINES_MAX]; /* a ring: line i is at i % LINES_MAX */
	uint64_t n_lines, printed;
	struct known_path paths[PATHS_MAX]; /* open addressing by path id; full = not learnt */
	unsigned int n_paths;
	uint64_t drops[DROP_NODES][DROP_NODES]; /* that reports tell of, by node and port */
	bool colour;
	struct termios saved;
	bool terminal;
};

/* One event, or several that are one to a person, in words. The view's lock is held. */
int pl_demo_event_text(
	const struct pl_demo_view *v, const struct pl_demo_line *l, char *dst, size_t cap);
/* Counts in their short form: the line fits 80 columns however long the demonstration runs. */
void pl_demo_status_text(const struct pl_demo_frame *f, char *dst, size_t cap);
