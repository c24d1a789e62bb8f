/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control protocol of a switch over its socket: pieces of requests, cut where the input has 0xff
 * (and the switch takes a turn), clients that leave at 0xfe. Every whole line has one answer, in
 * order: a line that is an object of JSON with "ok", and with "error" when that is false. A request
 * that was refused has changed no entry.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "service/switch.h"

static const char file[] =
	"name: s\n"
	"ports: [ { number: 1, uri: \"packet:a\" }, { number: 2, uri: \"packet:b\", rate: 10M } ]\n"
	"counters: [ { name: c, size: 4 } ]\n"
	"registers: [ { name: r, size: 4 } ]\n"
	"meters: [ { name: m, size: 2, rate: 1M } ]\n"
	"groups: [ { name: g, members: [ forward 1, forward 2 ] } ]\n"
	"tables:\n"
	"  - { name: t, size: 8, key: [ ip.dst prefix ], entries: [ ip.dst=10.0.0.0/8 -> forward 1 ] }\n"
	"  - { name: x, size: 8, key: [ port.in exact, l4.dst range ] }\n";

static struct pl_dp_program program;
static struct pl_switch sw;
static char path[64];
static struct pl_switch_port ports[2];

static void out(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	(void)arg;
	(void)stage;
	pl_dp_packet_free(pkt);
}

static void remove_socket(void)
{
	unlink(path);
}

static void begin(void)
{
	struct pl_dp_port_cfg cfg;

	must(pl_dp_program_parse(&program, "file", file, sizeof(file) - 1, NULL) == 0);
	sw.program = &program;
	sw.ports = ports;
	sw.n_ports = 2;
	for (unsigned int i = 0; i < 2; i++) {
		ports[i] = (struct pl_switch_port){
			.number = (uint16_t)(i + 1), .name = i == 0 ? "a" : "b", .uri = "packet:x"
		};
		pl_dp_program_queues(&program, i, &cfg);
		must(pl_dp_port_new(&ports[i].queues, &cfg, NULL) == 0);
	}
	must(pl_dp_pool_new(&sw.pool, PL_DP_HEADROOM + 64, 1) == 0);
	snprintf(path, sizeof(path), "/tmp/fuzz-switch-%d.sock", (int)getpid());
	must(pl_switch_control_open(&sw.control, &sw, path, NULL) == 0);
	atexit(remove_socket);
}

static int join(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must(fd >= 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	must(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

/* What the client has sent and received, in lines. */
struct talk {
	int fd;
	size_t asked, answered;
	struct pl_buf in;
};

static void look_at(const char *line, size_t len)
{
	json_t *x = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	must(json_is_object(x) && json_is_boolean(json_object_get(x, "ok")));
	if (json_is_false(json_object_get(x, "ok")))
		must(json_string_length(json_object_get(x, "error")) > 0);
	json_decref(x);
}

static void hear(struct talk *t)
{
	char bytes[4096];
	ssize_t n;
	const char *end;

	while ((n = recv(t->fd, bytes, sizeof(bytes), 0)) > 0)
		pl_buf_add(&t->in, bytes, (size_t)n);
	must(n < 0 && errno == EAGAIN);
	while (t->in.len > 0 && (end = memchr(t->in.data, '\n', t->in.len)) != NULL) {
		const size_t len = (size_t)(end - t->in.data);

		look_at(t->in.data, len);
		t->answered++;
		memmove(t->in.data, end + 1, t->in.len - len - 1);
		t->in.len -= len + 1;
	}
}

static void turn(struct talk *t)
{
	static uint64_t now_ns = 1;

	pl_switch_control_turn(sw.control, now_ns++);
	hear(t);
}

/* Until all that was asked is answered. */
static void finish(struct talk *t)
{
	for (unsigned int i = 0; t->answered < t->asked; i++) {
		must(i < 10000);
		turn(t);
	}
	turn(t);
	must(t->answered == t->asked && t->in.len == 0);
}

static void leave(struct talk *t)
{
	close(t->fd);
	pl_buf_done(&t->in);
	*t = (struct talk){ .fd = -1 };
	/* It hears of it. */
	pl_switch_control_turn(sw.control, 1);
}

static void say(struct talk *t, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		t->asked += data[i] == '\n';
	must(size == 0 || send(t->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pl_dp_pipeline_options o = { .pool = NULL };
	struct pl_dp_pipeline_options with = o;
	struct talk t = { .fd = -1 };
	size_t from = 0;

	if (path[0] == '\0')
		begin();
	if (size > 16384)
		return 0;
	with.pool = sw.pool;
	with.ops.out = out;
	must(pl_dp_program_build(&program, &with, NULL, &sw.pipeline, NULL) == 0);
	t.fd = join();
	pl_buf_init(&t.in);
	for (size_t i = 0; i <= size; i++) {
		if (i < size && data[i] < 0xfe)
			continue;
		say(&t, data + from, i - from);
		from = i + 1;
		if (i < size && data[i] == 0xfe) {
			leave(&t);
			t.fd = join();
			pl_buf_init(&t.in);
		} else {
			turn(&t);
		}
	}
	finish(&t);
	leave(&t);
	must(pl_switch_control_due_ns(sw.control) == UINT64_MAX);
	pl_dp_pipeline_free(sw.pipeline);
	return 0;
}
