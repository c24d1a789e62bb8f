/* SPDX-License-Identifier: BSD-2-Clause */
/* The port driver of capture files. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "netio/capture.h"
#include "netio/capture_writer.h"
#include "netio/driver.h"

struct pcap_port {
	struct pl_port port;
	struct pl_capture capture;       /* mode receive */
	struct pl_capture_writer writer; /* mode send */
};

static void tell(struct pl_diag *diag, const char *file, const char *text)
{
	if (diag == NULL)
		return;
	snprintf(diag->file, sizeof(diag->file), "%s", file);
	pl_diag_at(diag, 0, 0, "%s", text);
}

static int pcap_close(struct pl_port *port)
{
	struct pcap_port *self = (struct pcap_port *)port;
	int r;

	r = pl_capture_writer_done(&self->writer);
	pl_capture_done(&self->capture);
	free(port->name);
	free(self);
	return r;
}

static int open_recv(struct pcap_port *self, int fd)
{
	struct pl_source source;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode))
		r = -EISDIR;
	else
		r = pl_source_init_fd(&source, fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = pl_capture_init(&self->capture, &source);
	if (r < 0)
		return r;
	/* The header is read at once from a file only: in a pipe it may arrive later. */
	return S_ISREG(st.st_mode) ? pl_capture_start(&self->capture, 0) : 0;
}

static int open_file(const char *name, enum pl_port_mode mode, int given_fd)
{
	bool standard = strcmp(name, "-") == 0;
	int fd;

	if (given_fd > 0)
		return given_fd;
	if (standard)
		fd = fcntl(mode == PL_PORT_RECV ? STDIN_FILENO : STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else if (mode == PL_PORT_RECV)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	else
		fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd;
}

/* Explains a missing file; its name may be an interface or a mistyped scheme. */
static void tell_missing(struct pl_diag *diag, const char *file)
{
	static const char *const kinds[] = { "packet", "afxdp", "xdp", "tc", "pcap", "udp" };
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);
	const char *colon = strchr(file, ':'), *near = NULL;
	char text[600], kind[16];

	snprintf(kind, sizeof(kind), "%.*s", (int)(colon != NULL ? colon - file : 15), file);
	for (size_t i = 0; i < n && near == NULL; i++)
		near = strcmp(kinds[i], kind) == 0 ? kinds[i] : NULL;
	if (colon != NULL && near == NULL)
		near = pl_nearest(kind, kinds, n);
	if (colon == NULL && if_nametoindex(file) != 0)
		snprintf(text, sizeof(text),
			"%s; it is the name of an interface: write packet:%s (a tap: also tc:%s or "
			"xdp:%s)",
			strerror(ENOENT), file, file, file);
	else if (near == NULL)
		snprintf(text, sizeof(text), "%s", strerror(ENOENT));
	else if (colon != NULL && strcmp(near, kind) == 0)
		/* tc: and xdp: are taps in the kernel, not port drivers. */
		snprintf(text, sizeof(text),
			"%s; %s: is a source of 'pathline tap' and 'query' only", strerror(ENOENT),
			near);
	else if (colon == NULL)
		snprintf(text, sizeof(text), "%s; for a source of this kind write %s:%s",
			strerror(ENOENT), near,
			strcmp(near, "udp") == 0    ? "//HOST:PORT"
			: strcmp(near, "pcap") == 0 ? "FILE"
						    : "INTERFACE");
	else
		snprintf(text, sizeof(text), "%s; did you mean %s%s?", strerror(ENOENT), near,
			colon);
	tell(diag, file, text);
}

static int pcap_open(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag)
{
	const char *file = strcmp(uri->target, "-") == 0
				   ? (mode == PL_PORT_RECV ? "standard input" : "standard output")
				   : uri->target;
	struct pcap_port *self;
	int fd = -1, r = -ENOMEM;

	self = calloc(1, sizeof(*self));
	if (self == NULL)
		goto fail;
	self->port.fd = -1;
	self->port.clock = PL_STAMP_CAPTURE;
	self->capture.source.fd = -1;
	self->writer.fd = -1;
	self->port.name = strdup(file);
	if (self->port.name == NULL)
		goto fail;
	/* Before opening, which empties a file that is there. */
	r = -EINVAL;
	if (mode == PL_PORT_SEND && !pl_capture_writer_takes(uri->target))
		goto fail;
	fd = r = open_file(uri->target, mode, options->fd);
	if (r < 0)
		goto fail;
	if (mode == PL_PORT_RECV)
		r = open_recv(self, fd);
	else
		r = pl_capture_writer_init(&self->writer, fd, uri->target, options->snaplen);
	if (r < 0)
		goto fail;
	*ret_port = &self->port;
	return 0;
fail:
	if (fd < 0 && options->fd > 0)
		close(options->fd);
	if (r == -EINVAL && mode == PL_PORT_SEND)
		tell(diag, file,
			"compressed captures cannot be written: write pcap or pcapng and compress the file");
	else if (r == -ENOENT && mode == PL_PORT_RECV)
		tell_missing(diag, file);
	else
		tell(diag, file, r == -EBADMSG ? self->capture.fault_text : strerror(-r));
	if (self != NULL)
		pcap_close(&self->port);
	return r;
}

static int pcap_recv(
	struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag)
{
	struct pcap_port *self = (struct pcap_port *)port;
	int n = pl_capture_recv(&self->capture, ret_batch, timeout_ms);

	port->stats.length_lies = self->capture.length_lies;
	if (n < 0 && n != -ENODATA)
		tell(diag, port->name, self->capture.fault_text);
	return n;
}

static int pcap_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag)
{
	struct pcap_port *self = (struct pcap_port *)port;
	int n = pl_capture_writer_add(&self->writer, batch);

	if (n == -EINVAL)
		tell(diag, port->name,
			"a pcap file holds frames of one link type only; use a name in .pcapng for several");
	else if (n < 0)
		tell(diag, port->name, strerror(-n));
	return n;
}

const struct pl_port_driver pl_port_pcap = {
	.scheme = "pcap",
	.can = PL_PORT_CAN_REPLAY,
	.open = pcap_open,
	.recv = pcap_recv,
	.send = pcap_send,
	.close = pcap_close,
};
