/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a JSON object as a line. */
#include "show/json_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/complain.h"

struct pl_json *pl_json_line_begin(struct pl_json_line *line, const char *kind)
{
	struct pl_json *json = &line->json;

	pl_buf_init(&line->buf);
	pl_json_init(json, &line->buf);
	pl_json_object(json);
	if (kind != NULL)
		pl_json_text(json, "kind", kind);
	return json;
}

void pl_json_line_end(struct pl_json_line *line)
{
	pl_json_object_end(&line->json);
	if (line->buf.failed)
		pl_complain("%s", strerror(ENOMEM));
	else
		puts(line->buf.data);
	(void)fflush(stdout);
	pl_buf_done(&line->buf);
}
