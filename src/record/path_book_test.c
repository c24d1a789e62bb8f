/* SPDX-License-Identifier: BSD-2-Clause */
/* What is noted of paths is found, whole, whoever writes beside; and every form of a path change
 * says it. */
#include "record/path_book.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/test.h"
#include "record/json.h"
#include "record/rows.h"
#include "record/table.h"
#include "record/text.h"

static void note(uint64_t id, uint32_t hops, uint64_t first)
{
	struct pl_path_nodes n = { .hops = hops };

	for (; n.n < hops && n.n < PL_PATH_NODES_MAX; n.n++)
		n.node[n.n] = first + n.n;
	pl_path_book_note(id, &n);
}

static void book(void)
{
	struct pl_path_nodes n;
	char text[PL_PATH_NODES_TEXT];
	unsigned int found = 0;

	ok(!pl_path_book_find(1, &n) && n.hops == 0, "nothing is known at first");
	ok(!pl_path_book_find(0, &n), "nor of the id 0, as an entry never written has");
	note(1, 3, 7);
	ok(pl_path_book_find(1, &n) && n.hops == 3 && n.n == 3 && n.node[0] == 7 && n.node[2] == 9,
		"three nodes");
	eq(pl_path_nodes_text(text, &n), 5, "as text: its length");
	streq(text, "7>8>9", "as text");
	note(2, 200, UINT64_MAX - 16);
	ok(pl_path_book_find(2, &n) && n.hops == 200 && n.n == PL_PATH_NODES_MAX,
		"of a long path the first ones");
	ok(pl_path_nodes_text(text, &n) == 16 * 20 + 15 + 4 &&
			strcmp(text + strlen(text) - 24, "18446744073709551614>...") == 0,
		"and the text says that there are more");
	note(1, 2, 40);
	ok(pl_path_book_find(1, &n) && n.hops == 2 && n.node[0] == 40, "noted again");
	for (uint64_t id = 1000; id < 101000; id++)
		note(id, 1 + id % 16, id);
	for (uint64_t id = 1000; id < 101000; id++) {
		if (!pl_path_book_find(id, &n))
			continue;
		found++;
		if (n.hops != 1 + id % 16 || n.node[n.hops - 1] != id + n.hops - 1)
			ok(false, "path %llu is another's", (unsigned long long)id);
	}
	ok(found == 2048, "of a hundred thousand it has %u", found);
	ok(pl_path_book_find(100999, &n), "among them the last");
}

static atomic_bool done;

static void *writer(void *arg)
{
	for (uint64_t i = 0; i < 300000; i++) {
		uint64_t id = i % 3000;

		note(id, 1 + id % 16, id * (uintptr_t)arg);
	}
	return NULL;
}

static void *reader(void *arg)
{
	uint64_t *torn = arg;

	while (!atomic_load(&done)) {
		for (uint64_t id = 0; id < 3000; id++) {
			struct pl_path_nodes n;

			if (!pl_path_book_find(id, &n))
				continue;
			for (uint32_t i = 0; i < n.n; i++)
				*torn += n.hops != 1 + id % 16 || n.n != n.hops ||
					 n.node[i] != n.node[0] + i;
		}
	}
	return NULL;
}

/* Two write the same paths with other nodes each: what is read is one or the other. */
static void race(void)
{
	pthread_t w[2], r;
	uint64_t torn = 0;

	/* What the book had before is not of this form. */
	for (uint64_t id = 0; id < 3000; id++)
		note(id, 1 + id % 16, 0);
	if (pthread_create(&r, NULL, reader, &torn) != 0 ||
		pthread_create(&w[0], NULL, writer, (void *)1) != 0 ||
		pthread_create(&w[1], NULL, writer, (void *)1000) != 0)
		abort();
	pthread_join(w[0], NULL);
	pthread_join(w[1], NULL);
	atomic_store(&done, true);
	pthread_join(r, NULL);
	eq(torn, 0, "nothing torn is read");
}

static const char *form_of(const struct pl_event *e, struct pl_buf *buf, unsigned int form)
{
	struct pl_json json;

	pl_buf_reset(buf);
	switch (form) {
	case 0:
		pl_event_json(buf, e);
		break;
	case 1:
		pl_json_init(&json, buf);
		pl_event_api(&json, e);
		break;
	case 2:
		pl_event_text(buf, e);
		break;
	case 3:
		pl_event_csv(buf, e);
		break;
	default:
		pl_event_table(buf, e);
		break;
	}
	return buf->data;
}

static void forms(void)
{
	static const struct {
		const char *name, *known, *unknown;
	} want[] = {
		{ "JSON",
			",\"path_nodes\":[1,5,2],\"path_hops\":3,\"old_path_nodes\":[1,6,2],\"old_path_hops\":3}",
			",\"path_nodes\":[1,5,2],\"path_hops\":3,\"old_path_nodes\":null}" },
		{ "API",
			"\"path_nodes\":[1,5,2],\"path_hops\":3,\"old_path_nodes\":[1,6,2],\"old_path_hops\":3}",
			"\"path_nodes\":[1,5,2],\"path_hops\":3,\"old_path_nodes\":null}" },
		{ "text", " path_nodes=1>5>2 old_path_nodes=1>6>2\n",
			" path_nodes=1>5>2 old_path_nodes=unknown\n" },
		{ "CSV", ",1>5>2,1>6>2\n", ",1>5>2,unknown\n" },
		{ "table", " was 1>6>2 path 1>5>2\n", " was 00000000abcdef02 path 1>5>2\n" },
	};
	const struct pl_path_nodes now = { 3, 3, { 1, 5, 2 } }, old = { 3, 3, { 1, 6, 2 } };
	struct pl_event e = { .event = PL_EVENT_PATH_CHANGE,
		.path_id = 0xabcdef00,
		.old_path_id = 0xabcdef01,
		.present = PL_EVENT_HAS_path_id | PL_EVENT_HAS_old_path_id };
	struct pl_buf buf;

	pl_buf_init(&buf);
	pl_path_book_note(e.path_id, &now);
	pl_path_book_note(e.old_path_id, &old);
	for (unsigned int f = 0; f < 5; f++)
		ok(strstr(form_of(&e, &buf, f), want[f].known) != NULL, "%s: %s", want[f].name,
			buf.data);
	e.old_path_id = 0xabcdef02;
	for (unsigned int f = 0; f < 5; f++)
		ok(strstr(form_of(&e, &buf, f), want[f].unknown) != NULL, "%s, not known: %s",
			want[f].name, buf.data);
	e.event = PL_EVENT_LOOP;
	for (unsigned int f = 0; f < 3; f++)
		ok(strstr(form_of(&e, &buf, f), "nodes") == NULL, "%s: of other events nothing",
			want[f].name);
	pl_buf_done(&buf);
}

int main(void)
{
	book();
	race();
	forms();
	return pl_test_done();
}
