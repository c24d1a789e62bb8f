/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles values and records found in a region: for the outputs, the account, the largest number
 * and the rules. */
#include "pipeline/region_input_state.h"

#include <string.h>

static struct pl_region_alert_out alert_out(const struct pl_region_room *room)
{
	return (struct pl_region_alert_out){ room->events, room->told, room->now_ns, room->ts_ns };
}

void pl_region_note(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_value *v, const struct pl_region_spot *spot)
{
	const bool grows = (v->present & PL_VALUE_HAS_increase) != 0;
	const struct pl_region_seen seen = { .place = spot->place,
		.value = v->value,
		.increase = grows ? v->increase : 0,
		.key = spot->key,
		.held = spot->held,
		.slot = v->number,
		.check = spot->check };
	const struct pl_region_alert_out out = alert_out(room);

	in->stats.has_value = true;
	in->stats.value = v->value;
	in->stats.value_number = v->number;
	pl_region_max_add(
		&in->max, room->now_ns / in->slot_ns, grows ? v->increase : v->value, v->number);
	if (in->alerts != NULL)
		pl_region_alerts_value(in->alerts, &seen, &out);
}

static bool holds(void *arg, uint64_t slot, uint32_t check)
{
	const struct pl_region_input *in = arg;
	uint8_t value[PL_VALUE_MAX];
	uint32_t now;

	/* A slot being written counts as unchanged until the next reading. */
	return !pl_key_write_slot(&in->scan.key_write, slot, &now, value) || now == check;
}

void pl_region_watch(struct pl_region_input *in, const struct pl_region_room *room, bool read)
{
	const struct pl_region_alert_out out = alert_out(room);

	if (in->alerts == NULL)
		return;
	if (read && in->params.primitive == PL_KEY_WRITE && in->scans)
		pl_region_alerts_check(in->alerts, holds, in, &out);
	if (read)
		pl_region_alerts_read(in->alerts, &out);
	else
		pl_region_alerts_unread(in->alerts, &out);
	in->stats.alerts_raised = pl_region_alerts_raised(in->alerts);
	in->stats.alerts_refused = pl_region_alerts_refused(in->alerts);
}

void pl_region_tell(
	struct pl_region_input *in, const struct pl_region_room *room, const struct pl_value *value)
{
	struct pl_value_batch *b = room->values;

	if (!in->config.read.tell) {
		in->stats.counted++;
		return;
	}
	if (b->n == b->cap)
		b->flush(b, b->flush_arg);
	b->values[b->n] = *value;
	b->values[b->n].ts_ns = room->ts_ns;
	b->values[b->n++].primitive = (uint8_t)in->params.primitive;
	in->stats.told++;
}

/* Finds the check value of the slot in which a value of key-write was found. */
static bool is_held(const struct pl_region_input *in, const uint8_t *bytes, uint64_t number,
	uint32_t *ret_check)
{
	uint8_t value[PL_VALUE_MAX];

	/* The slot may have another value by now. */
	return in->params.primitive == PL_KEY_WRITE &&
	       pl_key_write_slot(&in->scan.key_write, number, ret_check, value) &&
	       memcmp(value, bytes, in->params.key_write.value_bytes) == 0;
}

/* Sets the key, unless its place in the value is taken by bytes. */
static void put_key(struct pl_value *v, const char *key)
{
	struct pl_text32 text = { "" };

	if ((v->present & PL_VALUE_HAS_bytes) != 0 || strlen(key) >= sizeof(text.c))
		return;
	memcpy(text.c, key, strlen(key));
	pl_value_set_key(v, text);
}

/* Handles the bytes of a value or an entry. */
void pl_region_take_bytes(struct pl_region_input *in, const struct pl_region_room *room,
	const uint8_t *bytes, uint32_t n, uint64_t number, uint32_t list)
{
	struct pl_region_spot spot = { .place = list != UINT32_MAX ? list : number };
	char key[PL_KEY_NAME_BYTES];
	struct pl_value v;

	if (in->config.value.format == PL_VALUE_RECORD && in->config.read.tell) {
		if (pl_region_record(bytes, (enum pl_content)in->params.content, room))
			in->stats.told++;
		else
			in->stats.dropped[PL_REGION_INVALID]++;
		return;
	}
	pl_region_value(&v, &in->config, bytes, n);
	v.number = number;
	if (list != UINT32_MAX) {
		v.list = list;
		v.present |= PL_VALUE_HAS_list;
	}
	if (in->keys != NULL || in->alerts != NULL)
		spot.held = is_held(in, bytes, number, &spot.check);
	/* The states of a known key are kept at its first slot, whichever copy was found. */
	if (spot.held && in->keys != NULL &&
		pl_key_names_find(in->keys, number, spot.check, bytes, key, &spot.place)) {
		spot.key = key;
		put_key(&v, key);
	}
	if ((v.present & PL_VALUE_HAS_value) != 0)
		pl_region_note(in, room, &v, &spot);
	pl_region_tell(in, room, &v);
}

void pl_region_take_cell(struct pl_region_input *in, const struct pl_region_room *room,
	const struct pl_scan_found *f)
{
	struct pl_value v;

	pl_region_value(&v, &in->config, NULL, 8);
	v.number = f->number;
	v.value = f->cell;
	v.increase = f->increase;
	v.present |= PL_VALUE_HAS_value | PL_VALUE_HAS_increase;
	pl_region_note(in, room, &v, &(const struct pl_region_spot){ .place = f->number });
	pl_region_tell(in, room, &v);
}

void pl_region_found(struct pl_region_input *in, const struct pl_region_room *room, uint64_t n)
{
	in->stats.found += n;
	if (n > 0)
		in->stats.last_ts_ns = room->ts_ns;
}

void pl_region_show_max(struct pl_region_input *in, uint64_t now_ns)
{
	in->stats.has_max = pl_region_max_read(
		&in->max, now_ns / in->slot_ns, &in->stats.max, &in->stats.max_number);
}
