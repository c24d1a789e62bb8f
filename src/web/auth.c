/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks passwords and tokens. */
#include "web/auth.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/thread.h"

enum {
	REMEMBERED = 64,
	WAITING_MAX = 16,
	ADDRESSES = 256,
	BURST = 10, /* failures of one address before it waits */
	DIGEST = 32,
	COST_MAX = 16,
};
#define REMEMBER_NS (UINT64_C(600) * 1000000000u)
#define REFILL_NS   (UINT64_C(1) * 1000000000u) /* one more failure per address and second */

struct pl_auth_job {
	struct pl_auth_job *next;
	char secret[PL_AUTH_SECRET_MAX]; /* name and password, both terminated */
	const char *password;
	char hash[64];
	bool known; /* a user has that name */
	uint8_t digest[DIGEST];
	struct pl_addr address;
	bool good;
	_Atomic bool done;
};

struct bucket {
	struct pl_addr address;
	uint64_t full_ns; /* time at which it has all its tries again */
};

struct pl_auth {
	void (*wake)(void *arg);
	void *arg;
	uint8_t salt[DIGEST];
	struct {
		uint8_t digest[DIGEST];
		uint64_t until_ns; /* 0 = free */
	} good[REMEMBERED];
	unsigned int next_good;
	struct bucket failures
		/* by hash of the address; a new address takes the place of one with all tries */
		[ADDRESSES];

	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* of the members below */
	pthread_cond_t more;
	bool stop;
	struct pl_auth_job *first, **last;
	unsigned int waiting;
};

/* ---- pure parts ---- */

int pl_auth_check_hash(const char *hash, struct pl_diag *diag)
{
	static const char alphabet[] =
		"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	unsigned int cost;

	if (strlen(hash) != 60 || strncmp(hash, "$2", 2) != 0 || strchr("aby", hash[2]) == NULL ||
		hash[3] != '$' || hash[4] < '0' || hash[4] > '3' || hash[5] < '0' ||
		hash[5] > '9' || hash[6] != '$' || strspn(hash + 7, alphabet) != 53)
		return pl_diag_fail(diag, -EINVAL,
			"not a bcrypt hash; create one with \"htpasswd -nBC 10 '' | tr -d ':'\"");
	cost = (unsigned int)(hash[4] - '0') * 10 + (unsigned int)(hash[5] - '0');
	if (cost >= 4 && cost <= COST_MAX)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"a bcrypt hash of cost %u; the cost must be from 4 to %d", cost, COST_MAX);
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes strictly: whole quads, padding only at the end. Returns the length, or a negative value
 * when the text is broken. */
static int base64_decode(const char *text, size_t n, char *dst, size_t cap)
{
	size_t used = 0;

	if (n == 0 || n % 4 != 0 || n / 4 * 3 > cap)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 4) {
		unsigned int pad = 0, word = 0;

		for (unsigned int k = 0; k < 4; k++) {
			int v = base64_value(text[i + k]);

			if (text[i + k] == '=' && i + 4 == n && k >= 2) {
				pad++;
				v = 0;
			} else if (v < 0 || pad > 0) {
				return -EINVAL;
			}
			word = word << 6 | (unsigned int)v;
		}
		dst[used++] = (char)(word >> 16);
		if (pad < 2)
			dst[used++] = (char)(word >> 8);
		if (pad < 1)
			dst[used++] = (char)word;
	}
	return (int)used;
}

int pl_auth_parse_basic(
	const char *header, char secret[PL_AUTH_SECRET_MAX], const char **ret_password)
{
	char *colon;
	size_t n;
	int len;

	if (strncasecmp(header, "Basic ", 6) != 0)
		return -EINVAL;
	header += 6;
	header += strspn(header, " ");
	n = strlen(header);
	while (n > 0 && header[n - 1] == ' ')
		n--;
	len = base64_decode(header, n, secret, PL_AUTH_SECRET_MAX - 1);
	if (len < 0)
		return -EINVAL;
	secret[len] = '\0';
	colon = memchr(secret, ':', (size_t)len);
	if (colon == NULL || strlen(secret) != (size_t)len)
		return -EINVAL;
	*colon = '\0';
	*ret_password = colon + 1;
	return 0;
}

bool pl_auth_equal(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned int differ = n != m;

	for (size_t i = 0; i < m; i++)
		differ |= (unsigned int)(unsigned char)a[n > 0 ? i % n : 0] ^ (unsigned char)b[i];
	return differ == 0;
}

/* ---- the checking thread ---- */

static bool check(const struct pl_auth_job *job)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	const char *got;
	bool good;

	if (data == NULL)
		return false;
	got = crypt_r(job->password, job->hash, data);
	good = got != NULL && pl_auth_equal(got, job->hash) && job->known;
	explicit_bzero(data, sizeof(*data));
	free(data);
	return good;
}

static void *check_loop(void *arg)
{
	struct pl_auth *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		struct pl_auth_job *job = a->first;

		if (job == NULL) {
			pthread_cond_wait(&a->more, &a->lock);
			continue;
		}
		a->first = job->next;
		if (a->first == NULL)
			a->last = &a->first;
		a->waiting--;
		pthread_mutex_unlock(&a->lock);
		job->good = check(job);
		/* Pairs with the acquire in pl_auth_is_done. The job may be gone right after. */
		atomic_store_explicit(&job->done, true, memory_order_release);
		a->wake(a->arg);
		pthread_mutex_lock(&a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int pl_auth_new(struct pl_auth **ret, void (*wake)(void *arg), void *arg)
{
	struct pl_auth *a = calloc(1, sizeof(*a));
	int r;

	if (a == NULL)
		return -ENOMEM;
	a->wake = wake;
	a->arg = arg;
	a->last = &a->first;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->more, NULL);
	r = getrandom(a->salt, sizeof(a->salt), 0) == (ssize_t)sizeof(a->salt) ? 0 : -EIO;
	if (r == 0) {
		r = pl_thread_start(&a->thread, "pl-auth", check_loop, a);
	}
	a->running = r == 0;
	if (r < 0) {
		pl_auth_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

static void free_job(struct pl_auth_job *job)
{
	explicit_bzero(job, sizeof(*job));
	free(job);
}

void pl_auth_free(struct pl_auth *a)
{
	if (a == NULL)
		return;
	if (a->running) {
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->more);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
	}
	pthread_cond_destroy(&a->more);
	pthread_mutex_destroy(&a->lock);
	explicit_bzero(a, sizeof(*a));
	free(a);
}

/* ---- the server's side ---- */

void pl_auth_forget(struct pl_auth *a)
{
	memset(a->good, 0, sizeof(a->good));
}

/* Hashes the credentials and the stored ones, under a key of this process. */
static bool digest_of(const struct pl_auth *a, const struct pl_auth_job *job, uint8_t ret[DIGEST])
{
	uint8_t text[sizeof(job->secret) + sizeof(job->hash)];
	size_t n = (size_t)(job->password - job->secret) + strlen(job->password) + 1;
	bool good;

	memcpy(text, job->secret, n);
	memcpy(text + n, job->hash, sizeof(job->hash));
	good = gnutls_hmac_fast(GNUTLS_MAC_SHA256, a->salt, sizeof(a->salt), text,
		       n + sizeof(job->hash), ret) == 0;
	explicit_bzero(text, sizeof(text));
	return good;
}

static bool remembered(const struct pl_auth *a, const uint8_t digest[DIGEST], uint64_t now_ns)
{
	bool found = false;

	for (unsigned int i = 0; i < REMEMBERED; i++)
		found |= a->good[i].until_ns > now_ns &&
			 gnutls_memcmp(a->good[i].digest, digest, DIGEST) == 0;
	return found;
}

static struct bucket *bucket_of(struct pl_auth *a, const struct pl_addr *address)
{
	uint32_t h = 2166136261u;

	/* An IPv6 address counts by its /64: its owner has all of it. */
	for (unsigned int i = 0; i < (pl_addr_is_v4(address) ? 16u : 8u); i++)
		h = (h ^ address->b[i]) * 16777619u;
	return &a->failures[h % ADDRESSES];
}

/* Two addresses with one place share its tries: fewer, never more. */
static bool may_try(struct pl_auth *a, const struct pl_addr *address, uint64_t now_ns)
{
	const struct bucket *b = bucket_of(a, address);

	return b->full_ns < now_ns + BURST * REFILL_NS;
}

static void failed(struct pl_auth *a, const struct pl_addr *address, uint64_t now_ns)
{
	struct bucket *b = bucket_of(a, address);

	b->full_ns = (b->full_ns > now_ns ? b->full_ns : now_ns) + REFILL_NS;
}

/*
 * Hash to compare with. For an unknown name it is the hash of some user, always the same for a
 * name: the check then takes as long as for a known name, so the time does not reveal names,
 * whatever the hashes' costs are.
 */
const char *pl_auth_hash_for(
	struct pl_auth *a, const struct pl_webconf *conf, const char *name, bool *ret_known)
{
	const char *found = NULL;
	uint8_t digest[DIGEST] = { 0 };
	uint32_t choice;

	for (size_t i = 0; i < conf->n_users; i++) {
		if (pl_auth_equal(name, conf->users[i].name))
			found = conf->users[i].hash;
	}
	*ret_known = found != NULL;
	if (gnutls_hmac_fast(
		    GNUTLS_MAC_SHA256, a->salt, sizeof(a->salt), name, strlen(name), digest) < 0)
		return NULL;
	memcpy(&choice, digest, sizeof(choice));
	return found != NULL ? found : conf->users[choice % conf->n_users].hash;
}

static bool token_good(const struct pl_webconf *conf, const char *token)
{
	bool good = false;

	for (size_t i = 0; i < conf->n_tokens; i++)
		good |= pl_auth_equal(token, conf->tokens[i]);
	return good;
}

static enum pl_auth_result enqueue(
	struct pl_auth *a, struct pl_auth_job *job, struct pl_auth_job **ret)
{
	enum pl_auth_result r = PL_AUTH_LATER;

	pthread_mutex_lock(&a->lock);
	if (a->waiting < WAITING_MAX) {
		*a->last = job;
		a->last = &job->next;
		a->waiting++;
		pthread_cond_signal(&a->more);
		*ret = job;
		r = PL_AUTH_PENDING;
	}
	pthread_mutex_unlock(&a->lock);
	if (r != PL_AUTH_PENDING)
		free_job(job);
	return r;
}

enum pl_auth_result pl_auth_begin(struct pl_auth *a, const struct pl_webconf *conf,
	const char *header, const struct pl_addr *address, uint64_t now_ns,
	struct pl_auth_job **ret_job)
{
	struct pl_auth_job *job;
	const char *hash;

	if (header == NULL)
		return PL_AUTH_NOTHING;
	if (!may_try(a, address, now_ns))
		return PL_AUTH_LATER;
	if (strncasecmp(header, "Bearer ", 7) == 0) {
		if (token_good(conf, header + 7))
			return PL_AUTH_GOOD;
		failed(a, address, now_ns);
		return PL_AUTH_BAD;
	}
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return PL_AUTH_LATER;
	if (conf->n_users == 0 || pl_auth_parse_basic(header, job->secret, &job->password) < 0) {
		free_job(job);
		failed(a, address, now_ns);
		return PL_AUTH_BAD;
	}
	hash = pl_auth_hash_for(a, conf, job->secret, &job->known);
	job->address = *address;
	snprintf(job->hash, sizeof(job->hash), "%s", hash != NULL ? hash : "");
	if (hash == NULL || !digest_of(a, job, job->digest)) {
		free_job(job);
		return PL_AUTH_LATER;
	}
	if (job->known && remembered(a, job->digest, now_ns)) {
		free_job(job);
		return PL_AUTH_GOOD;
	}
	return enqueue(a, job, ret_job);
}

bool pl_auth_is_done(const struct pl_auth_job *job)
{
	/* Pairs with the release in check_loop. */
	return atomic_load_explicit(&job->done, memory_order_acquire);
}

/* Takes the job out of the queue, or waits until its check is over. */
static void abandon(struct pl_auth *a, struct pl_auth_job *job)
{
	struct pl_auth_job **link = &a->first;

	pthread_mutex_lock(&a->lock);
	while (*link != NULL && *link != job)
		link = &(*link)->next;
	if (*link != NULL) {
		*link = job->next;
		if (a->last == &job->next)
			a->last = link;
		a->waiting--;
		atomic_store_explicit(&job->done, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&a->lock);
	while (!pl_auth_is_done(job))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

enum pl_auth_result pl_auth_finish(struct pl_auth *a, struct pl_auth_job *job, uint64_t now_ns)
{
	bool good;

	if (!pl_auth_is_done(job)) {
		abandon(a, job);
		free_job(job);
		return PL_AUTH_BAD;
	}
	good = job->good;
	if (good) {
		memcpy(a->good[a->next_good].digest, job->digest, DIGEST);
		a->good[a->next_good].until_ns = now_ns + REMEMBER_NS;
		a->next_good = (a->next_good + 1) % REMEMBERED;
	} else {
		failed(a, &job->address, now_ns);
	}
	free_job(job);
	return good ? PL_AUTH_GOOD : PL_AUTH_BAD;
}
