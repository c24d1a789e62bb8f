/* SPDX-License-Identifier: BSD-2-Clause */
/* URIs and capture files as ports: opens them, compares reading with libpcap, and reads written
 * files back with it. */
#include "netio/port.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/test.h"

static char folder[64];

static const char *path(const char *name)
{
	static char text[2][128];
	static unsigned int turn;

	turn ^= 1;
	snprintf(text[turn], sizeof(text[turn]), "%s/%s", folder, name);
	return text[turn];
}

static void test_uris(void)
{
	static const struct {
		const char *uri;
		int want;
		const char *says;
	} rows[] = {
		{ "file.pcap", 1, "" },
		{ "dir/with:colon?mark", 1, "" },
		{ "pcap:-", 1, "" },
		{ "-", 1, "" },
		{ "./udp:thing", 1, "" },
		{ "udp://:32766", 1, "" },
		{ "udp://127.0.0.1:1", 1, "" },
		{ "udp://[fd00::1]:1?sockets=4", 4, "" },
		{ "udp://[fe80::1%lo]:1", 1, "" },
		{ "udp://collector.example:9?rcvbuf=4MiB&maxlen=9000&timestamp=kernel", 1, "" },
		{ "udp://:1?sockets=256", 256, "" },
		{ "", -EINVAL, "no file name" },
		{ "pcap:", -EINVAL, "no file name" },
		{ "udp:32766", -EINVAL, "write udp://" },
		{ "udp://", -EINVAL, "no address" },
		{ "tcp://:1", -EINVAL, "unknown kind of port 'tcp'" },
		{ "udp://:", -EINVAL, "port number" },
		{ "udp://host", -EINVAL, "HOST:PORT" },
		{ "udp://:65536", -EINVAL, "65535" },
		{ "udp://:-1", -EINVAL, "port number" },
		{ "udp://a b:1", -EINVAL, "not a host name" },
		{ "udp://[]:1", -EINVAL, "not a host name" },
		{ "udp://:1?", -EINVAL, "unknown key ''" },
		{ "udp://:1?sokets=2", -EINVAL, "did you mean 'sockets'" },
		{ "udp://:1?sockets", -EINVAL, "has no value" },
		{ "udp://:1?sockets=", -EINVAL, "has no value" },
		{ "udp://:1?sockets=0", -EINVAL, "not between 1 and 256" },
		{ "udp://:1?sockets=257", -EINVAL, "not between 1 and 256" },
		{ "udp://:1?sockets=two", -EINVAL, "nor a size" },
		{ "udp://:1?sockets=2&sockets=2", -EINVAL, "twice" },
		{ "udp://:1?rcvbuf=1TiB", -EINVAL, "" },
		{ "udp://:1?maxlen=3", -EINVAL, "not between 64" },
		{ "udp://:1?maxlen=65537", -EINVAL, "65536" },
		{ "udp://:1?timestamp=now", -EINVAL, "'batch' or 'kernel'" },
	};
	char longest[5000];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_diag diag = { "" };

		eq((int64_t)pl_port_uri_sockets(rows[i].uri, &diag), (int64_t)rows[i].want, "'%s'",
			rows[i].uri);
		ok(strstr(diag.text, rows[i].says) != NULL, "'%s': %s", rows[i].uri, diag.text);
		eq((int64_t)pl_port_uri_sockets(rows[i].uri, NULL), (int64_t)rows[i].want,
			"without diag");
	}
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	eq(pl_port_uri_sockets(longest, NULL), -EINVAL, "a URI without end");
}

static void write_file(const char *name, const void *data, size_t len)
{
	int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void test_open_errors(void)
{
	struct pl_port *port = NULL;
	struct pl_diag diag = { "" };
	struct pl_port_options given = { .fd = 0 };
	static const char *const bad[] = { "afxdp:lo?queues=x", "packet:lo?ring=3",
		"udp://:1?sockets=0" };
	struct stat st;

	eq(pl_port_open(&port, path("none.pcap"), PL_PORT_RECV, NULL, &diag), -ENOENT,
		"no such file");
	ok(strstr(diag.file, "none.pcap") != NULL, "the file is named: %s", diag.file);
	eq(pl_port_open(&port, folder, PL_PORT_RECV, NULL, &diag), -EISDIR, "a folder");
	write_file("empty", "", 0);
	eq(pl_port_open(&port, path("empty"), PL_PORT_RECV, NULL, &diag), -EBADMSG,
		"an empty file");
	ok(strstr(diag.text, "is empty") != NULL, "%s", diag.text);
	write_file("text", "once upon a time", 16);
	eq(pl_port_open(&port, path("text"), PL_PORT_RECV, NULL, &diag), -EBADMSG, "a text");
	eq(pl_port_open(&port, path("text"), PL_PORT_RECV, NULL, NULL), -EBADMSG, "without diag");
	write_file("x.pcap.gz", "kept", 4);
	eq(pl_port_open(&port, path("x.pcap.gz"), PL_PORT_SEND, NULL, &diag), -EINVAL,
		"packed output");
	ok(stat(path("x.pcap.gz"), &st) == 0 && st.st_size == 4, "a file that was there is kept");
	eq(pl_port_open(&port, path("new.pcap.zst"), PL_PORT_SEND, NULL, &diag), -EINVAL);
	ok(access(path("new.pcap.zst"), F_OK) < 0, "and none is made");
	eq(pl_port_open(&port, path("no/such.pcap"), PL_PORT_SEND, NULL, &diag), -ENOENT,
		"no such folder");
	ok(port == NULL, "nothing was opened");
	given.fd = open("/dev/null", O_RDONLY);
	eq(pl_port_open(&port, "packet:lo", PL_PORT_RECV, &given, &diag), -EINVAL,
		"a descriptor for a port that takes none");
	ok(fcntl(given.fd, F_GETFD) < 0, "it is closed: %s", diag.text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		eq(pl_port_open(&port, bad[i], PL_PORT_RECV, NULL, &diag), -EINVAL, "%s", bad[i]);
		ok(fcntl(0, F_GETFD) >= 0, "standard input stays open");
	}
	eq(pl_port_close(NULL), 0);
}

/* Makes packets whose bytes follow from their number. */
static void fill_batch(struct pl_batch *batch, uint8_t (*bytes)[2048], uint32_t first, uint8_t link)
{
	batch->n = PL_BATCH_MAX;
	for (uint32_t i = 0; i < batch->n; i++) {
		struct pl_packet *p = &batch->pkts[i];
		uint32_t number = first + i;

		p->len = number * 7 % 2048;
		memset(bytes[i], (int)number, p->len);
		p->data = bytes[i];
		p->wire_len = number % 5 == 0 ? p->len + 100 : p->len;
		p->ts_ns = UINT64_C(1700000000123456789) + number * UINT64_C(1000000007);
		p->link = link;
	}
}

#define ROUNDS 12

static bool write_capture(const char *name, uint8_t link, unsigned int snaplen)
{
	static uint8_t bytes[PL_BATCH_MAX][2048];
	static struct pl_batch batch;
	struct pl_port_options options = { .snaplen = snaplen };
	struct pl_port_stats stats;
	struct pl_port *port;
	bool good = true;

	if (!ok(pl_port_open(&port, path(name), PL_PORT_SEND, &options, NULL) == 0, "open %s",
		    name))
		return false;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		fill_batch(&batch, bytes, i * PL_BATCH_MAX, link);
		good &= pl_port_send(port, &batch, NULL) == PL_BATCH_MAX;
	}
	pl_port_stats(port, &stats);
	eq(stats.packets, ROUNDS * PL_BATCH_MAX);
	eq(pl_port_fd(port), (uint64_t)-1 & UINT64_MAX, "files have nothing to poll");
	return ok(pl_port_close(port) == 0 && good, "write %s", name);
}

/* Reads a file with libpcap and with a port, and compares all packets. */
static void compare_with_libpcap(const char *name, uint32_t want)
{
	static struct pl_batch batch;
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	struct pl_port *port;
	uint32_t n = 0, wrong = 0;
	pcap_t *pcap;
	int got;

	pcap = pcap_open_offline_with_tstamp_precision(
		path(name), PCAP_TSTAMP_PRECISION_NANO, error);
	if (!ok(pcap != NULL, "libpcap opens %s: %s", name, pcap == NULL ? error : "yes"))
		return;
	if (!ok(pl_port_open(&port, path(name), PL_PORT_RECV, NULL, NULL) == 0, "so do we"))
		return;
	while ((got = pl_port_recv(port, &batch, 0, NULL)) > 0) {
		for (int i = 0; i < got; i++, n++) {
			const struct pl_packet *p = &batch.pkts[i];

			if (pcap_next_ex(pcap, &h, &data) != 1 || h->caplen != p->len ||
				h->len != p->wire_len || memcmp(data, p->data, p->len) != 0 ||
				(uint64_t)h->ts.tv_sec * 1000000000u + (uint64_t)h->ts.tv_usec !=
					p->ts_ns)
				wrong++;
		}
		pl_port_release(port, &batch);
	}
	eq(got, -ENODATA, "%s: end", name);
	eq(pcap_next_ex(pcap, &h, &data), PCAP_ERROR_BREAK, "%s: libpcap's end", name);
	eq(wrong, 0, "%s: the same packets", name);
	eq(n, want, "%s: all of them", name);
	pl_port_close(port);
	pcap_close(pcap);
}

static void test_written_read_by_libpcap(void)
{
	static const struct {
		const char *name;
		uint8_t link;
	} rows[] = {
		{ "e.pcap", PL_LINK_ETHERNET },
		{ "e.pcapng", PL_LINK_ETHERNET },
		{ "r.pcap", PL_LINK_RAW_IP },
		{ "s.pcapng", PL_LINK_SLL },
		{ "t.pcap", PL_LINK_SLL2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (write_capture(rows[i].name, rows[i].link, 0))
			compare_with_libpcap(rows[i].name, ROUNDS * PL_BATCH_MAX);
	}
	write_capture("cut.pcap", PL_LINK_ETHERNET, 100);
	compare_with_libpcap("cut.pcap", ROUNDS * PL_BATCH_MAX);
	write_capture("cut.pcapng", PL_LINK_ETHERNET, 101);
	compare_with_libpcap("cut.pcapng", ROUNDS * PL_BATCH_MAX);
}

static void swap(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

/* Files written by libpcap are read: in its byte order, byte-swapped, and compressed. */
static void test_read_beside_libpcap(void)
{
	static const int precisions[] = { PCAP_TSTAMP_PRECISION_MICRO, PCAP_TSTAMP_PRECISION_NANO };
	static uint8_t bytes[1 << 20];

	for (size_t k = 0; k < 2; k++) {
		pcap_t *dead = pcap_open_dead_with_tstamp_precision(
			DLT_EN10MB, 65535, (u_int)precisions[k]);
		pcap_dumper_t *dump = pcap_dump_open(dead, path("lib.pcap"));
		size_t len, at;
		gzFile gz;
		FILE *f;

		for (uint32_t i = 0; i < 1000; i++) {
			struct pcap_pkthdr h = { .caplen = i % 500, .len = i % 500 + i % 3 };

			h.ts.tv_sec = 1700000000 + i;
			h.ts.tv_usec = (suseconds_t)(i * 999);
			pcap_dump((u_char *)dump, &h, bytes);
		}
		pcap_dump_close(dump);
		pcap_close(dead);
		compare_with_libpcap("lib.pcap", 1000);

		f = fopen(path("lib.pcap"), "rb");
		len = fread(bytes, 1, sizeof(bytes), f);
		fclose(f);
		gz = gzopen(path("lib.pcap.gz"), "wb");
		gzwrite(gz, bytes, (unsigned int)len);
		gzclose(gz);
		/* Swaps the bytes of every header word. */
		swap(bytes, 4);
		swap(bytes + 4, 2);
		swap(bytes + 6, 2);
		for (at = 8; at < 24; at += 4)
			swap(bytes + at, 4);
		while (at < len) {
			uint32_t caplen;

			memcpy(&caplen, bytes + at + 8, 4);
			for (int i = 0; i < 4; i++)
				swap(bytes + at + 4 * i, 4);
			at += 16 + caplen;
		}
		write_file("swapped.pcap", bytes, len);
		compare_with_libpcap("swapped.pcap", 1000);
		memset(bytes, 0x5a, sizeof(bytes));
	}
}

static int count_all(const char *uri, int *ret_end)
{
	static struct pl_batch batch;
	struct pl_port *port;
	int n, total = 0;

	*ret_end = pl_port_open(&port, uri, PL_PORT_RECV, NULL, NULL);
	if (*ret_end < 0)
		return -1;
	while ((n = pl_port_recv(port, &batch, PL_TEST_PATIENCE_S * 1000, NULL)) > 0) {
		total += n;
		pl_port_release(port, &batch);
	}
	*ret_end = n;
	pl_port_close(port);
	return total;
}

static void test_packed(void)
{
	int end;

	eq(count_all(path("lib.pcap.gz"), &end), 1000, "gzip");
	eq(end, -ENODATA);
}

static void test_links_in_files(void)
{
	static struct pl_batch batch;
	static const uint8_t byte;
	struct pl_diag diag = { "" };
	struct pl_port *port;
	int end;

	batch.n = 3;
	for (int i = 0; i < 3; i++)
		batch.pkts[i] = (struct pl_packet){ .data = &byte, .len = 1, .wire_len = 1 };
	batch.pkts[1].link = PL_LINK_RAW_IP;
	batch.pkts[2].link = PL_LINK_UDP;
	pl_port_open(&port, path("mixed.pcap"), PL_PORT_SEND, NULL, NULL);
	eq(pl_port_send(port, &batch, &diag), 1, "pcap takes one link type");
	batch.pkts[0].link = PL_LINK_RAW_IP;
	eq(pl_port_send(port, &batch, &diag), -EINVAL, "and no other");
	ok(strstr(diag.text, "one link type") != NULL, "%s", diag.text);
	batch.pkts[0].link = PL_LINK_UDP;
	eq(pl_port_send(port, &batch, &diag), -EINVAL, "a datagram is not a frame");
	batch.pkts[0].link = PL_LINK_UNKNOWN;
	eq(pl_port_send(port, &batch, &diag), -EINVAL);
	eq(pl_port_close(port), 0);
	eq(count_all(path("mixed.pcap"), &end), 1);

	pl_port_open(&port, path("mixed.pcapng"), PL_PORT_SEND, NULL, NULL);
	batch.pkts[0].link = PL_LINK_SLL2;
	eq(pl_port_send(port, &batch, &diag), 2, "pcapng takes several, and no datagram");
	eq(pl_port_close(port), 0);
	eq(count_all(path("mixed.pcapng"), &end), 2);

	pl_port_open(&port, path("nothing.pcap"), PL_PORT_SEND, NULL, NULL);
	eq(pl_port_close(port), 0);
	eq(count_all(path("nothing.pcap"), &end), 0, "a file without packets");
	eq(end, -ENODATA);
	pl_port_open(&port, path("nothing.pcapng"), PL_PORT_SEND, NULL, NULL);
	eq(pl_port_close(port), 0);
	eq(count_all(path("nothing.pcapng"), &end), 0);
	eq(end, -ENODATA);
}

static void test_full_disk(void)
{
	static uint8_t bytes[PL_BATCH_MAX][2048];
	static struct pl_batch batch;
	struct pl_port *port;
	int r = 0;

	if (!ok(pl_port_open(&port, "/dev/full", PL_PORT_SEND, NULL, NULL) == 0, "open /dev/full"))
		return;
	eq(pl_port_close(port), -ENOSPC, "a header that did not fit is seen at close");
	pl_port_open(&port, "/dev/full", PL_PORT_SEND, NULL, NULL);
	for (int i = 0; i < 20 && r >= 0; i++) {
		fill_batch(&batch, bytes, 0, PL_LINK_ETHERNET);
		r = pl_port_send(port, &batch, NULL);
	}
	eq(r, -ENOSPC, "sending says it");
	eq(pl_port_close(port), -ENOSPC, "and so does close");
}

/* Packets from a pipe come as they are written, and a time-out is not an end. */
static void test_pipe(void)
{
	static struct pl_batch batch;
	struct pl_port_options options = { 0 };
	uint8_t data[400];
	struct pl_port *port;
	int fds[2], f;

	f = open(path("lib.pcap"), O_RDONLY);
	if (!ok(read(f, data, sizeof(data)) == sizeof(data) && pipe(fds) == 0, "set up"))
		return;
	close(f);
	options.fd = fds[0];
	eq(pl_port_open(&port, "-", PL_PORT_RECV, &options, NULL), 0, "opening does not wait");
	eq(pl_port_recv(port, &batch, 0, NULL), 0, "nothing yet");
	eq(write(fds[1], data, 1), 1);
	eq(pl_port_recv(port, &batch, 10, NULL), 0, "one byte");
	eq(write(fds[1], data + 1, 23 + 16 + 16), 55);
	eq(pl_port_recv(port, &batch, PL_TEST_PATIENCE_S * 1000, NULL), 1,
		"a header and one packet");
	pl_port_release(port, &batch);
	eq(pl_port_recv(port, &batch, 0, NULL), 0, "half a packet");
	eq(write(fds[1], data + 56, 30), 30);
	close(fds[1]);
	eq(pl_port_recv(port, &batch, PL_TEST_PATIENCE_S * 1000, NULL), 2);
	pl_port_release(port, &batch);
	eq(pl_port_recv(port, &batch, PL_TEST_PATIENCE_S * 1000, NULL), -EBADMSG,
		"it ended within one");
	eq(pl_port_close(port), 0);
}

/* A file that shrinks while it is read is damaged, not deadly. */
static void test_shrinking_file(void)
{
	static struct pl_batch batch;
	struct pl_diag diag = { "" };
	struct pl_port *port;
	int n, total;

	write_capture("shrink.pcap", PL_LINK_ETHERNET, 0);
	pl_port_open(&port, path("shrink.pcap"), PL_PORT_RECV, NULL, NULL);
	total = pl_port_recv(port, &batch, 0, NULL);
	pl_port_release(port, &batch);
	eq(truncate(path("shrink.pcap"), 1000001), 0);
	while ((n = pl_port_recv(port, &batch, 0, &diag)) > 0) {
		total += n;
		pl_port_release(port, &batch);
	}
	eq(n, -EBADMSG, "%s", diag.text);
	ok(total > PL_BATCH_MAX / 2 && total < ROUNDS * PL_BATCH_MAX, "%d packets before it",
		total);
	pl_port_close(port);
}

int main(void)
{
	snprintf(folder, sizeof(folder), "%s", "/tmp/pathline-port-test-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return EXIT_FAILURE;
	test_uris();
	test_open_errors();
	test_written_read_by_libpcap();
	test_read_beside_libpcap();
	test_packed();
	test_links_in_files();
	test_full_disk();
	test_pipe();
	test_shrinking_file();
	if (pl_test_failed == 0) {
		char command[128];

		snprintf(command, sizeof(command), "rm -rf '%s'", folder);
		ok(system(command) == 0, "clean up");
	}
	return pl_test_done();
}
