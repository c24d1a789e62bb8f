/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of conditions: what makes a part not ready, what finds no room, what another thread sees. */
#include "base/condition.h"

#include "base/buf.h"
#include "base/test.h"

static void json_is(const struct pl_conditions *list, const char *want, const char *what)
{
	struct pl_json json;
	struct pl_buf text;

	pl_buf_init(&text);
	pl_json_init(&json, &text);
	pl_json_array(&json);
	pl_conditions_json(list, "memory", &json);
	pl_json_array_end(&json);
	streq(text.data, want, "%s", what);
	pl_buf_done(&text);
}

static void test_levels(void)
{
	struct pl_conditions list;

	pl_conditions_clear(&list);
	ok(pl_conditions_why(&list) == NULL, "nothing is wrong: it is ready");
	json_is(&list, "[]", "nothing is listed");
	pl_condition_add(&list, PL_CONDITION_WARNING, "refused", "%d refused", 7);
	ok(pl_conditions_why(&list) == NULL, "with a warning it is ready");
	pl_condition_add(&list, PL_CONDITION_FAULT, "down", "%s is down", "eth\"0\n");
	streq(pl_conditions_why(&list), "eth\"0\n is down", "the first fault says why not");
	json_is(&list,
		"[{\"part\":\"memory\",\"condition\":\"refused\",\"level\":\"warning\",\"text\":\"7 refused\"},"
		"{\"part\":\"memory\",\"condition\":\"down\",\"level\":\"fault\",\"text\":\"eth\\\"0\\n is down\"}]",
		"both are listed");
}

/* More than there is room for, the only fault among them. */
static void test_full(void)
{
	struct pl_conditions list;
	char path[400];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	pl_conditions_clear(&list);
	for (unsigned int i = 0; i < PL_CONDITIONS_MAX; i++)
		pl_condition_add(&list, PL_CONDITION_WARNING, "long", "%s", path);
	pl_condition_add(&list, PL_CONDITION_FAULT, "down", "it is down");
	eq(list.n, PL_CONDITIONS_MAX, "as many as fit");
	eq(list.hidden, 1, "the rest is counted");
	eq(strlen(list.items[0].text), sizeof(list.items[0].text) - 1, "a long text is cut");
	ok(pl_conditions_why(&list) != NULL, "a fault that found no room is one");
}

static void test_board(void)
{
	static struct pl_condition_board board;
	struct pl_conditions list, got;

	pl_condition_board_get(&board, &got);
	eq(got.n, 0, "a board is empty at first");
	pl_conditions_clear(&list);
	pl_condition_add(&list, PL_CONDITION_FAULT, "down", "it is down");
	pl_condition_board_put(&board, &list);
	pl_condition_board_get(&board, &got);
	streq(pl_conditions_why(&got), "it is down", "what is put is shown");
	pl_conditions_clear(&list);
	pl_condition_board_put(&board, &list);
	pl_condition_board_get(&board, &got);
	ok(got.n == 0 && !got.fault, "until it is over");
}

int main(void)
{
	test_levels();
	test_full();
	test_board();
	return pl_test_done();
}
