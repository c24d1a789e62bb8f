/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens AF_XDP sockets and their rings. */
#include "netio/xsk.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "netio/caps.h"

#define HUGE_PAGE_BYTES (2u << 20)
#define BUSY_TRIES      100
#define BUSY_PAUSE_NS   10000000

static int set_option(int fd, int name, const void *value, size_t len)
{
	return setsockopt(fd, SOL_XDP, name, value, (socklen_t)len) < 0 ? -errno : 0;
}

/* Allocates the frames' memory: huge pages where some are reserved, else with a hint for
 * transparent ones. */
static int make_memory(struct pl_xsk *x, int node)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	size_t bytes = ((size_t)x->recv_frames + x->send_frames) * x->frame_bytes;
	void *p;

	bytes = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
	x->huge_pages = p != MAP_FAILED;
	if (p == MAP_FAILED)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	x->memory = p;
	x->memory_bytes = bytes;
	if (!x->huge_pages)
		(void)madvise(p, bytes, MADV_HUGEPAGE);
	if (node >= 0 && node < 64) {
		unsigned long nodes = 1ul << node;

		/* Prefers memory of the device's NUMA node; any other works too. */
		(void)syscall(SYS_mbind, p, bytes, MPOL_PREFERRED, &nodes, sizeof(nodes) * 8, 0);
	}
	return madvise(p, bytes, MADV_POPULATE_WRITE) < 0 && errno != EINVAL ? -errno : 0;
}

static int map_ring(struct pl_xsk *x, struct pl_xsk_ring *r, const struct xdp_ring_offset *off,
	uint32_t entries, size_t entry_bytes, uint64_t page)
{
	uint8_t *p;

	r->map_bytes = off->desc + entries * entry_bytes;
	p = mmap(NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, x->fd,
		(off_t)page);
	if (p == MAP_FAILED)
		return -errno;
	r->map = p;
	r->producer = (uint32_t *)(void *)(p + off->producer);
	r->consumer = (uint32_t *)(void *)(p + off->consumer);
	r->flags = (uint32_t *)(void *)(p + off->flags);
	r->entries = p + off->desc;
	r->mask = entries - 1;
	return 0;
}

static int make_rings(struct pl_xsk *x, const struct pl_xsk_cfg *cfg)
{
	struct xdp_umem_reg reg = { .addr = (uintptr_t)x->memory,
		.len = ((uint64_t)x->recv_frames + x->send_frames) * x->frame_bytes,
		.chunk_size = x->frame_bytes };
	/* The kernel requires fill and completion ring, even for one direction. */
	uint32_t fill = cfg->recv > 0 ? cfg->recv : 1, done = cfg->send > 0 ? cfg->send : 1;
	struct xdp_mmap_offsets off = { 0 };
	socklen_t len = sizeof(off);
	int r;

	r = set_option(x->fd, XDP_UMEM_REG, &reg, sizeof(reg));
	if (r == 0)
		r = set_option(x->fd, XDP_UMEM_FILL_RING, &fill, sizeof(fill));
	if (r == 0)
		r = set_option(x->fd, XDP_UMEM_COMPLETION_RING, &done, sizeof(done));
	if (r == 0 && cfg->recv > 0)
		r = set_option(x->fd, XDP_RX_RING, &cfg->recv, sizeof(cfg->recv));
	if (r == 0 && cfg->send > 0)
		r = set_option(x->fd, XDP_TX_RING, &cfg->send, sizeof(cfg->send));
	if (r == 0 && getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* Rings have flags since Linux 5.4; older kernels return a shorter structure. */
	if (len != sizeof(off))
		return -EOPNOTSUPP;
	r = map_ring(x, &x->fill, &off.fr, fill, sizeof(uint64_t), XDP_UMEM_PGOFF_FILL_RING);
	if (r == 0)
		r = map_ring(x, &x->done, &off.cr, done, sizeof(uint64_t),
			XDP_UMEM_PGOFF_COMPLETION_RING);
	if (r == 0 && cfg->send > 0)
		r = map_ring(
			x, &x->tx, &off.tx, cfg->send, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
	if (r == 0 && cfg->recv > 0)
		r = map_ring(
			x, &x->rx, &off.rx, cfg->recv, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
	return r;
}

static int bind_to(struct pl_xsk *x, const struct pl_xsk_cfg *cfg)
{
	struct sockaddr_xdp sa = { .sxdp_family = AF_XDP,
		.sxdp_flags = XDP_USE_NEED_WAKEUP,
		.sxdp_ifindex = (uint32_t)cfg->ifindex,
		.sxdp_queue_id = cfg->queue };
	struct xdp_options options = { 0 };
	socklen_t len = sizeof(options);

	if (cfg->copy == PL_XSK_COPY_ZERO)
		sa.sxdp_flags |= XDP_ZEROCOPY;
	if (cfg->copy == PL_XSK_COPY_COPY)
		sa.sxdp_flags |= XDP_COPY;
	if (bind(x->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	if (getsockopt(x->fd, SOL_XDP, XDP_OPTIONS, &options, &len) == 0)
		x->zero_copy = (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
	return 0;
}

/* Binds to the queue, and retries for a second: the kernel frees the queue of a closed socket a
 * moment later. */
static int bind_patiently(struct pl_xsk *x, const struct pl_xsk_cfg *cfg)
{
	int r = bind_to(x, cfg);

	for (unsigned int i = 0; i < BUSY_TRIES && r == -EBUSY; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = BUSY_PAUSE_NS }, NULL);
		r = bind_to(x, cfg);
	}
	return r;
}

static void tell(const struct pl_xsk_cfg *cfg, int error, struct pl_diag *diag)
{
	char caps[96];

	switch (error) {
	case EPERM:
	case EACCES:
		pl_caps_text(
			pl_caps_missing(PL_CAP_NET_RAW | PL_CAP_NET_ADMIN), caps, sizeof(caps));
		pl_diag_set(diag, "%s: an AF_XDP socket needs %s", cfg->ifname,
			caps[0] != '\0' ? caps : "privileges that this process lacks (EPERM)");
		break;
	case EAFNOSUPPORT:
		pl_diag_set(diag, "%s: this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)",
			cfg->ifname);
		break;
	case EBUSY:
		pl_diag_set(diag, "%s: queue %u has an AF_XDP socket of another process already",
			cfg->ifname, cfg->queue);
		break;
	case EINVAL:
		pl_diag_set(diag, "%s: there is no queue %u", cfg->ifname, cfg->queue);
		break;
	case EOPNOTSUPP:
		pl_diag_set(diag, "%s: %s", cfg->ifname,
			cfg->copy == PL_XSK_COPY_ZERO
				? "its driver has no zero-copy; use copy=auto"
				: "this kernel's AF_XDP is too old (5.4 is needed)");
		break;
	case ENOBUFS:
	case ENOMEM:
		pl_diag_set(diag,
			"%s: no memory for a ring of %u frames; use a smaller ring= or raise the limit of locked memory (ulimit -l)",
			cfg->ifname, cfg->recv + cfg->send);
		break;
	default:
		pl_diag_set(diag, "%s: AF_XDP socket: %s", cfg->ifname, strerror(error));
	}
}

int pl_xsk_open(struct pl_xsk *x, const struct pl_xsk_cfg *cfg, struct pl_diag *diag)
{
	int r;

	memset(x, 0, sizeof(*x));
	x->recv_frames = cfg->recv;
	x->send_frames = cfg->send;
	x->frame_bytes = cfg->frame_bytes;
	if (cfg->rights != NULL) {
		x->fd = cfg->rights->socket(cfg->rights, AF_XDP);
		r = x->fd < 0 ? x->fd : 0;
	} else {
		x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
		r = x->fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = make_memory(x, cfg->node);
	if (r == 0)
		r = make_rings(x, cfg);
	if (r == 0)
		r = bind_patiently(x, cfg);
	if (r < 0) {
		tell(cfg, -r, diag);
		pl_xsk_close(x);
		return r;
	}
	for (uint32_t i = 0; i < x->recv_frames; i++)
		*pl_xsk_addr(&x->fill, i) = (uint64_t)i * x->frame_bytes;
	pl_xsk_store(x->fill.producer, x->recv_frames);
	return 0;
}

static void unmap_ring(struct pl_xsk_ring *r)
{
	if (r->map != NULL)
		munmap(r->map, r->map_bytes);
}

void pl_xsk_close(struct pl_xsk *x)
{
	/* The kernel lets go of the memory when the socket is closed and its rings are unmapped. */
	unmap_ring(&x->rx);
	unmap_ring(&x->tx);
	unmap_ring(&x->fill);
	unmap_ring(&x->done);
	if (x->fd >= 0)
		close(x->fd);
	if (x->memory != NULL)
		munmap(x->memory, x->memory_bytes);
	memset(x, 0, sizeof(*x));
	x->fd = -1;
}
