/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers without an end. A stream without bytes is suspended: the library does not watch its
 * socket meanwhile, so the tick checks whether the client is still there. */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "web/http_internal.h"

enum { BLOCK_BYTES = 16 * 1024 };

static int socket_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info != NULL ? info->connect_fd : -1;
}

static ssize_t read_stream(void *arg, uint64_t pos, char *dst, size_t cap)
{
	struct pl_http_stream *s = arg;
	size_t n = s->ops->read(s->stream, dst, cap);

	(void)pos;
	if (n == PL_HTTP_STREAM_OVER)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n > 0) {
		/* Time for the client to read this, from now. */
		pl_http_set_phase(s->connection, PL_HTTP_ANSWER, PL_HTTP_ANSWER_LIMIT_NS);
		return (ssize_t)n;
	}
	if (s->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	pl_http_set_phase(s->connection, PL_HTTP_WORK, UINT64_MAX);
	s->suspended = true;
	MHD_suspend_connection(s->connection);
	return 0;
}

static void free_stream(void *arg)
{
	struct pl_http_stream *s = arg;

	*s->link = s->next;
	if (s->next != NULL)
		s->next->link = s->link;
	s->ops->close(s->stream);
	free(s);
}

struct MHD_Response *pl_http_stream_begin(
	struct pl_http_listener *l, struct MHD_Connection *c, const struct pl_http_reply *reply)
{
	struct pl_http *h = l->http;
	struct pl_http_stream *s = calloc(1, sizeof(*s));
	struct MHD_Response *response = NULL;

	if (s == NULL) {
		reply->stream_ops->close(reply->stream);
		return NULL;
	}
	*s = (struct pl_http_stream){
		.listener = l, .connection = c, .ops = reply->stream_ops, .stream = reply->stream
	};
	s->next = h->streams;
	s->link = &h->streams;
	if (s->next != NULL)
		s->next->link = &s->next;
	h->streams = s;
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, s, free_stream);
	if (response == NULL)
		free_stream(s);
	else
		pl_count(&h->counters.streams, 1);
	return response;
}

static void resume(struct pl_http_stream *s)
{
	s->suspended = false;
	pl_http_set_phase(s->connection, PL_HTTP_ANSWER, PL_HTTP_ANSWER_LIMIT_NS);
	MHD_resume_connection(s->connection);
}

void pl_http_streams_tick(struct pl_http *h)
{
	for (struct pl_http_stream *s = h->streams; s != NULL; s = s->next) {
		if (!s->suspended)
			continue;
		if (pl_http_is_gone(socket_of(s->connection))) {
			/* The library closes the connection when it finds that nothing can be
			 * sent. */
			s->ending = true;
			shutdown(socket_of(s->connection), SHUT_RDWR);
			resume(s);
		} else if (s->ops->ready(s->stream)) {
			resume(s);
		}
	}
}

void pl_http_streams_end(struct pl_http *h, const struct pl_http_listener *l)
{
	for (struct pl_http_stream *s = h->streams; s != NULL; s = s->next) {
		if (l != NULL && s->listener != l)
			continue;
		s->ending = true;
		if (s->suspended)
			resume(s);
	}
}
