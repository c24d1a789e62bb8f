/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, by Landlock. Its system calls and structures stand here: the C library of Debian 12 has
 * none of them, and its kernel headers know only the second version.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sandbox_internal.h"

/* Numbers of the calls, the same on every architecture. */
#define CREATE_RULESET 444
#define ADD_RULE       445
#define RESTRICT_SELF  446
#define ASK_VERSION    1u
#define RULE_BENEATH   1

enum right {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_CHAR = 1 << 6,
	MAKE_DIR = 1 << 7,
	MAKE_REG = 1 << 8,
	MAKE_SOCK = 1 << 9,
	MAKE_FIFO = 1 << 10,
	MAKE_BLOCK = 1 << 11,
	MAKE_SYM = 1 << 12,
	REFER = 1 << 13,     /* version 2: rename from folder to folder */
	TRUNCATE = 1 << 14,  /* version 3 */
	IOCTL_DEV = 1 << 15, /* version 5 */
};

#define OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)
#define READS    (READ_FILE | READ_DIR)
#define WRITES                                                                                     \
	(READS | WRITE_FILE | REMOVE_FILE | REMOVE_DIR | MAKE_DIR | MAKE_REG | MAKE_SOCK |         \
		MAKE_FIFO | REFER | TRUNCATE | IOCTL_DEV)

struct ruleset {
	int fd;
	uint64_t handled;
};

struct ruleset_attr {
	uint64_t handled_access_fs;
};

struct beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

/*
 * Without resolver configuration, certificates and the libraries of name services no server is
 * found. Where a file of /etc leads to elsewhere, the folder there is named, too: a rule is of one
 * file, and does not hold for another that is put in its place.
 */
static const char *const of_the_system[] = {
#if SANDBOX_SANITIZER
	"/",
#endif
	/* names: resolver, services, the libraries of both */
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
	"/etc/services", "/etc/protocols", "/etc/mdns.allow", "/etc/ld.so.cache",
	"/etc/ld.so.preload",
	/* users and the time */
	"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone",
	/* certificates, and files of the libraries of TLS, Kafka and RDMA */
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/openssl.cnf",
	"/etc/ca-certificates", "/var/lib/ca-certificates", "/etc/pki/tls/certs",
	"/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/pki/tls/openssl.d",
	"/etc/pki/ca-trust", "/etc/pkcs11", "/etc/crypto-policies", "/etc/gnutls", "/etc/krb5.conf",
	"/etc/krb5.conf.d", "/etc/gss", "/etc/sasl2", "/etc/libibverbs.d", "/etc/rdma",
	"/etc/libnl-3",
	/* folders of the system */
	"/usr", "/lib", "/lib64", "/proc", "/sys", "/dev/urandom", "/dev/random",
	/* targets of /etc/resolv.conf */
	"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/netconfig",
	"/run/connman", "/run/nscd"
};

static uint64_t all_of(int version)
{
	uint64_t all = (uint64_t)MAKE_SYM * 2 - 1;

	if (version >= 2)
		all |= REFER;
	if (version >= 3)
		all |= TRUNCATE;
	if (version >= 5)
		all |= IOCTL_DEV;
	return all;
}

/* Allows a path. Returns 0, or the errno of one that does not exist or may not be seen. */
static int allow(const struct ruleset *set, const char *path, uint64_t rights)
{
	struct beneath_attr rule = { .allowed_access = rights & set->handled };
	struct stat st;
	int r = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno;
	if (fstat(rule.parent_fd, &st) < 0)
		r = errno;
	if (r == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	if (r == 0 && syscall(ADD_RULE, set->fd, RULE_BENEATH, &rule, 0) < 0)
		r = errno;
	close(rule.parent_fd);
	return r;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder as it is named, and that which a link leads to: either may get a new file of the
 * name. */
static int allow_folder_of(const struct ruleset *set, const char *path, uint64_t rights)
{
	char text[PATH_MAX], real[PATH_MAX];
	int r;

	if (snprintf(text, sizeof(text), "%s", path) >= (int)sizeof(text))
		return ENAMETOOLONG;
	r = allow(set, dirname(text), rights);
	if (realpath(path, real) != NULL)
		(void)allow(set, dirname(real), rights);
	return r;
}

/* Allows a path. One that does not exist, or that this user may not see, cannot be used; its later
 * use reports that. */
static int allow_path(const struct ruleset *set, const struct pl_sandbox_path *p)
{
	const uint64_t rights = p->write ? WRITES : READS;
	int r;

	if (p->path[0] == '\0')
		return 0;
	r = allow(set, p->path, rights);
	if (!is_folder(p->path))
		r = allow_folder_of(set, p->path, rights);
	return r == ENOENT || r == EACCES || r == ENOTDIR || r == ELOOP ? 0 : r;
}

static int add_rules(const struct ruleset *set, const struct pl_sandbox_options *options)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(of_the_system) / sizeof(of_the_system[0]); i++)
		(void)allow(set, of_the_system[i], READS);
	/* Root owns the secrets of /etc: it reads the files above, and no file that replaces one.
	 * For another user the files' own rights keep the secrets, and /etc/resolv.conf is read
	 * again where a DHCP client replaces it. */
	if (geteuid() != 0)
		(void)allow(set, "/etc", READS);
	(void)allow(set, "/dev/null", READS | WRITE_FILE | TRUNCATE);
	(void)allow(set, "/dev/tty", READS | WRITE_FILE | IOCTL_DEV);
	if (options->rdma)
		(void)allow(set, "/dev/infiniband", READS | WRITE_FILE | IOCTL_DEV);
	for (size_t i = 0; r == 0 && i < options->n_paths; i++)
		r = allow_path(set, &options->paths[i]);
	return r;
}

int sandbox_files_enter(const struct pl_sandbox_options *options, struct pl_diag *diag)
{
	const int version = (int)syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
	struct ruleset set = { .handled = version > 0 ? all_of(version) : 0 };
	const struct ruleset_attr attr = { set.handled };
	int r = 0;

	if (version <= 0)
		return version < 0 ? -errno : -ENOSYS;
	set.fd = (int)syscall(CREATE_RULESET, &attr, sizeof(attr), 0);
	if (set.fd < 0)
		r = errno;
	if (r == 0)
		r = add_rules(&set, options);
	if (r == 0 && syscall(RESTRICT_SELF, set.fd, 0) < 0)
		r = errno;
	if (set.fd >= 0)
		close(set.fd);
	if (r != 0)
		pl_diag_set(diag, "Landlock: %s; PATHLINE_SANDBOX=no-landlock switches it off",
			strerror(r));
	return r != 0 ? -r : version;
}
