/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a pipeline: parts.c makes its parts, action.c and change.c their entries, pipeline.c the
 * whole, inherit.c takes over those of the one before, run.c runs packets; own.c, telemetry/,
 * marking/ extend it, and call only parts.c and pl_dp_emit of it. */
#pragma once

#include "dataplane/field.h"
#include "dataplane/meter.h"
#include "dataplane/own.h"
#include "dataplane/pipeline.h"
#include "dataplane/table.h"

enum pl_dp_action {
#define PL_DP_ACTION(id, name, args, help) PL_DP_ACTION_##id,
#include "dataplane/actions.def"
#undef PL_DP_ACTION
	PL_DP_ACTION_EXTERN,
};

#define PL_DP_STEPS_MAX   32
#define PL_DP_MEMBERS_MAX 64
/* Most nested copies that mirrors make of a packet: a mirror after a queue to the same port would
 * otherwise never end. */
#define PL_DP_COPIES_MAX  4
/* Output port of a packet that is flooded to all other ports. */
#define PL_DP_PORT_FLOOD  0xffff
/* Mark of packets that the node itself sends, for tables to match. */
#define PL_DP_MARK_OWN    255

struct pl_dp_cells_state {
	char name[PL_DP_NAME_MAX + 1];
	uint32_t size;
	/* true: an action created the register; it is freed with the last step that uses it. */
	bool of_action;
	uint32_t users;
	struct pl_dp_named *list;
	struct pl_dp_meter_cfg meter;
	uint64_t (*counters)[2]; /* packets, bytes */
	uint64_t *registers;
	struct pl_dp_meter *meters;
};

struct pl_dp_step {
	uint8_t action; /* enum pl_dp_action */
	uint8_t field;  /* field that is set */
	/* Fields that give index and value; PL_DP_FIELD_MAX: the number below instead. */
	uint8_t index_field, value_field;
	bool add; /* add to the register */
	uint16_t port;
	uint32_t index; /* of a cell, added to index_field's value; or of a table */
	uint64_t value[2];
	uint64_t
		mask; /* of a field that is set: bits that keep their values; of first: the period */
	struct pl_dp_cells_state *cells; /* of an extern: the register that it created or shares */
	const struct pl_dp_group *group;
	const struct pl_dp_extern *ext;
	void *state;
};

struct pl_dp_actions {
	unsigned int n;
	char *text;
	struct pl_dp_step steps[];
};

struct pl_dp_group {
	char name[PL_DP_NAME_MAX + 1];
	unsigned int n;
	struct pl_dp_actions *members[PL_DP_MEMBERS_MAX];
};

struct pl_dp_table {
	char name[PL_DP_NAME_MAX + 1];
	enum pl_dp_stage stage;
	struct pl_dp_key key;
	uint32_t size;
	struct pl_dp_entry **entries;
	size_t n;
	struct pl_dp_lookup *lookup;
	struct pl_dp_actions *miss; /* NULL: none */
	uint64_t hits, misses;
};

struct pl_dp_gate { /* a port */
	bool there, up;
	uint64_t mac;
	uint32_t mtu;
};

struct pl_dp_watcher {
	const struct pl_dp_extern *ext;
	void *state;
};

struct pl_dp_named {
	struct pl_dp_cells_state *items[PL_DP_NAMED_MAX];
	unsigned int n;
};

struct pl_dp_pipeline {
	char name[PL_DP_NAME_MAX + 1];
	uint32_t node_id;
	uint64_t node_key;     /* of choices by the flow hash: another one in each node */
	uint32_t first_number; /* pl_dp_first_number */
	uint32_t n_streams;    /* of records, that were begun */
	uint64_t seed;         /* of hash tables that traffic fills: flows of a filter */
	struct pl_dp_pool *pool;
	struct pl_dp_pipeline_ops ops;
	const struct pl_dp_extern *const *externs;
	struct pl_dp_gate gates[PL_DP_PORTS_MAX + 1];
	struct pl_dp_named cells[3]; /* enum pl_dp_cells */
	struct pl_dp_group *groups[PL_DP_NAMED_MAX];
	unsigned int n_groups;
	struct pl_dp_table *tables[PL_DP_TABLES_MAX];
	unsigned int n_tables;
	uint64_t serial;
	struct pl_dp_cells_state *shared; /* register of the extern that is being created */
	bool hashes;                      /* an action or key uses the flow hash */
	struct pl_dp_account account[PL_DP_STAGES];
	struct pl_dp_own *own;         /* NULL: the ports have no addresses */
	struct pl_dp_marking *marking; /* NULL: no measurement points */
	/* Actions to call for drops; rebuilt by every change. */
	struct pl_dp_watcher *watchers;
	size_t n_watchers;
};

/* ---- parts.c ---- */

int pl_dp_table_index(const struct pl_dp_pipeline *p, const char *name);
struct pl_dp_cells_state *pl_dp_cells_find(
	const struct pl_dp_pipeline *p, enum pl_dp_cells kind, const char *name, size_t len);

/* Removes a user; frees a register that an action created with its last user. NULL is allowed. */
void pl_dp_cells_release(struct pl_dp_cells_state *c);
void pl_dp_cells_free(struct pl_dp_cells_state *c);
struct pl_dp_group *pl_dp_group_find(const struct pl_dp_pipeline *p, const char *name);
/* Returns the number of the first datagram of a stream of records: another one for each stream,
 * also for one whose entry was removed and added again, and for each pipeline, unless it has a
 * seed. From a number of before on, the first datagrams would be taken for repeated ones. */
uint32_t pl_dp_first_number(struct pl_dp_pipeline *p);

/* ---- pipeline.c ---- */

/* Frees entries, misses and members of groups, with the state of their actions; afterwards the
 * pipeline can only be freed. */
void pl_dp_entries_free(struct pl_dp_pipeline *p);

/* ---- action.c ---- */

/* Parses actions of the table with this number, or (table < 0) of a member of a group. */
int pl_dp_actions_parse(struct pl_dp_pipeline *p, int table, const char *text,
	struct pl_dp_actions **ret, struct pl_diag *diag);
void pl_dp_actions_free(struct pl_dp_actions *a);

/* ---- change.c ---- */

void pl_dp_entry_free(struct pl_dp_entry *e);
/* Rebuilds the list of actions to call for drops. -ENOMEM. */
int pl_dp_watchers_make(struct pl_dp_pipeline *p);
