/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the network namespaces of a chain. */
#include "chain/dta_lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netio/rtnl.h"

static int present(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A new one, in which this thread is left. */
static int make_namespace(void)
{
	int r;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	r = pl_rtnl_hush();
	if (r == 0)
		r = pl_rtnl_up("lo", true);
	return r < 0 ? r : present();
}

static int give_address(const char *addr)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct ifreq req = { .ifr_name = "eth0" };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = s < 0 ? -errno : 0;

	(void)inet_pton(AF_INET, addr, &sa.sin_addr);
	memcpy(&req.ifr_addr, &sa, sizeof(sa));
	if (r == 0 && ioctl(s, SIOCSIFADDR, &req) < 0)
		r = -errno;
	(void)inet_pton(AF_INET, "255.255.255.0", &sa.sin_addr);
	memcpy(&req.ifr_netmask, &sa, sizeof(sa));
	if (r == 0 && ioctl(s, SIOCSIFNETMASK, &req) < 0)
		r = -errno;
	if (s >= 0)
		close(s);
	return r;
}

static int raise_end(int netns, const char *addr)
{
	int r = setns(netns, CLONE_NEWNET) < 0 ? -errno : 0;

	if (r == 0)
		r = pl_rtnl_up("eth0", true);
	return r == 0 ? give_address(addr) : r;
}

static int make(struct pl_dta_lab *lab)
{
	int r;

	lab->collector = make_namespace();
	if (lab->collector < 0)
		return lab->collector;
	lab->translator = make_namespace();
	if (lab->translator < 0)
		return lab->translator;
	r = pl_rtnl_veth("eth0", "eth0", lab->collector, 1);
	if (r == 0)
		r = raise_end(lab->collector, "10.77.0.2");
	return r == 0 ? raise_end(lab->translator, "10.77.0.1") : r;
}

int pl_dta_lab_make(struct pl_dta_lab *ret, struct pl_diag *diag)
{
	int here = present(), r;

	*ret = (struct pl_dta_lab){ -1, -1 };
	r = here < 0 ? here : make(ret);
	if (here >= 0) {
		if (setns(here, CLONE_NEWNET) < 0 && r == 0)
			r = -errno;
		close(here);
	}
	if (r < 0) {
		pl_diag_set(diag, "a laboratory of network namespaces: %s", strerror(-r));
		pl_dta_lab_done(ret);
	}
	return r;
}

void pl_dta_lab_done(struct pl_dta_lab *lab)
{
	if (lab->translator >= 0)
		close(lab->translator);
	if (lab->collector >= 0)
		close(lab->collector);
	*lab = (struct pl_dta_lab){ -1, -1 };
}

int pl_dta_netns_open(const char *name, struct pl_diag *diag)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') == NULL ? "/run/netns/" : "", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	pl_diag_set(diag, "network namespace %s: %s", path, strerror(errno));
	return -errno;
}
