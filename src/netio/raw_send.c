/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends frames through an AF_PACKET socket. */
#include "netio/raw_send.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"

enum { AT_ONCE = 64 };
#define WAIT_NS  UINT64_C(1000000000)
#define PAUSE_NS 50000

int raw_send_prepare(int fd)
{
	const int on = 1;

	return setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* Waits after EAGAIN until the socket is writable, 1 ms at most; after ENOBUFS for PAUSE_NS,
 * because the kernel does not report when the NIC's queue has room again. */
static void wait_for_room(int fd, int error)
{
	struct pollfd writable = { .fd = fd, .events = POLLOUT };

	if (error == EAGAIN)
		(void)poll(&writable, 1, 1);
	else
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

uint32_t raw_send(int fd, const struct pl_packet *frames, uint32_t n, int *ret_error)
{
	struct mmsghdr messages[AT_ONCE] = { 0 };
	struct iovec bytes[AT_ONCE];
	uint64_t waits_ns = 0;
	uint32_t done = 0;

	*ret_error = 0;
	while (done < n) {
		const uint32_t k = n - done < AT_ONCE ? n - done : AT_ONCE;
		int sent;

		for (uint32_t i = 0; i < k; i++) {
			const struct pl_packet *p = &frames[done + i];

			bytes[i] = (struct iovec){ (void *)(uintptr_t)p->data, p->len };
			messages[i].msg_hdr.msg_iov = &bytes[i];
			messages[i].msg_hdr.msg_iovlen = 1;
		}
		sent = sendmmsg(fd, messages, k, MSG_DONTWAIT);
		if (sent > 0) {
			done += (uint32_t)sent;
			waits_ns = 0;
			continue;
		}
		if (errno == EINTR)
			continue;
		*ret_error = -errno;
		if (errno != EAGAIN && errno != ENOBUFS)
			return done;
		if (waits_ns == 0)
			waits_ns = pl_clock_mono_ns();
		else if (pl_clock_mono_ns() - waits_ns >= WAIT_NS) {
			*ret_error = -ETIMEDOUT;
			return done;
		}
		wait_for_room(fd, -*ret_error);
		*ret_error = 0;
	}
	return done;
}
