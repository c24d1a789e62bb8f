/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the demonstration shows. It learns of paths and events as an exporter of the pipeline (on
 * the output's thread) and is drawn by the main thread. On a terminal one screen is redrawn in
 * place, each frame one write; elsewhere lines are printed: one per event, and how things stand
 * every few seconds.
 */
#pragma once

#include <stdbool.h>

#include "demo/losses.h"
#include "detect/aggregate.h"
#include "export/exporter.h"
#include "pipeline/pipeline.h"

struct pl_demo_view;

/* The view is its own; the exporter made for it is taken over by a pipeline and may be gone before
 * it. */
int pl_demo_view_new(struct pl_demo_view **ret);
void pl_demo_view_free(struct pl_demo_view *view);
int pl_demo_view_export(struct pl_demo_view *view, struct pl_export **ret);

/* Notes that marking found a link that begins to lose packets. Any thread. */
void pl_demo_view_lost(void *view, const struct pl_demo_link_loss *link);
/* Number of packets that INT reported as dropped before a port. */
uint64_t pl_demo_view_drops(struct pl_demo_view *view, uint64_t node, unsigned int port);

struct pl_demo_frame {
	double seconds;                /* since the start */
	double rate;                   /* reports per second, lately */
	const char *traffic, *metrics; /* the network in words, and the address of the page */
	const struct pl_pipeline_stats *stats;
	const struct pl_aggregate *aggregate;
	const struct pl_demo_losses_sum *losses;
	bool last; /* print what might still be folded, too */
};

/* Takes the terminal over (alternate screen, no echo) and gives it back. */
void pl_demo_view_terminal(struct pl_demo_view *view, bool on);
void pl_demo_view_draw(struct pl_demo_view *view, const struct pl_demo_frame *frame);

/* Prints events not yet printed, one line each; for outputs that are no terminal. */
void pl_demo_view_print(struct pl_demo_view *view, const struct pl_demo_frame *frame, bool status);
