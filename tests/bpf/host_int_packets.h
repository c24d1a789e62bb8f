/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random packets for the tests of INT at hosts, with every checksum right, and an account of
 * checksums that adds up all bytes anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/host_int.h"
#include "hostint/hostint.h"
#include "wire/int.h"

#define PACKET_BYTES 2400

struct packet {
	uint8_t data[PACKET_BYTES];
	uint32_t len;
	uint32_t network, transport, payload; /* where these begin */
	bool v6, tcp, tagged, unchecked, padded;
};

static uint64_t seed = 1;

static uint32_t random_number(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % below;
}

static uint32_t add_bytes(uint32_t sum, const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Bytes from the transport header on. */
static uint32_t transport_bytes(const struct packet *p)
{
	const uint8_t *ip = p->data + p->network;

	return p->network + (p->v6 ? 40 + get16(ip + 4) : get16(ip + 2)) - p->transport;
}

/* What the stack leaves in a packet whose checksum the NIC completes. */
static uint32_t pseudo_sum(const struct packet *p)
{
	const uint8_t *ip = p->data + p->network;
	uint32_t sum = p->v6 ? add_bytes(0, ip + 8, 32) : add_bytes(0, ip + 12, 8);

	return add_bytes(sum + transport_bytes(p) + (p->tcp ? 6 : 17), NULL, 0);
}

/* The sum over pseudo header and all that follows: 0xffff where the checksum is right. */
static uint32_t transport_sum(const struct packet *p)
{
	return add_bytes(pseudo_sum(p), p->data + p->transport, transport_bytes(p));
}

static uint8_t *check_of(struct packet *p)
{
	return p->data + p->transport + (p->tcp ? 16 : 6);
}

static void set_checks(struct packet *p)
{
	uint8_t *ip = p->data + p->network, *check = check_of(p);
	uint32_t sum;

	if (!p->v6) {
		put16(ip + 10, 0);
		put16(ip + 10, (uint16_t)~add_bytes(0, ip, (ip[0] & 15u) * 4));
	}
	put16(check, 0);
	if (p->unchecked)
		return;
	sum = (uint16_t)~transport_sum(p);
	put16(check, sum == 0 && !p->tcp ? 0xffff : sum);
}

/* Whether every checksum is right. */
static bool checks_hold(struct packet *p)
{
	const uint8_t *ip = p->data + p->network;

	if (!p->v6 && add_bytes(0, ip, (ip[0] & 15u) * 4) != 0xffff)
		return false;
	if (p->unchecked)
		return get16(check_of(p)) == 0;
	return transport_sum(p) == 0xffff;
}

static void put_network(struct packet *p, uint32_t head, uint32_t total, uint8_t tos)
{
	uint8_t *ip = p->data + p->network;

	if (p->v6) {
		ip[0] = (uint8_t)(0x60 | tos >> 4);
		ip[1] = (uint8_t)((ip[1] & 15) | tos << 4);
		put16(ip + 4, total - 40);
		ip[6] = p->tcp ? 6 : 17;
	} else {
		ip[0] = (uint8_t)(0x40 | head / 4);
		ip[1] = tos;
		put16(ip + 2, total);
		put16(ip + 6, random_number(2) == 0 ? 0x4000 : 0);
		ip[9] = p->tcp ? 6 : 17;
	}
}

static void make_packet(struct packet *p, bool tags)
{
	uint32_t head, l4, pay, total;

	memset(p, 0, sizeof(*p));
	for (uint32_t i = 0; i < PACKET_BYTES; i++)
		p->data[i] = (uint8_t)random_number(256);
	p->v6 = random_number(3) == 0;
	p->tcp = random_number(2) == 0;
	p->tagged = tags && random_number(4) == 0;
	p->unchecked = !p->v6 && !p->tcp && random_number(4) == 0;
	p->padded = tags && random_number(8) == 0;
	p->network = p->tagged ? 18 : 14;
	head = p->v6 ? 40 : random_number(4) == 0 ? 20 + 4 * random_number(11) : 20;
	l4 = p->tcp ? 20 + (random_number(2) == 0 ? 12 : 4 * random_number(11)) : 8;
	pay = random_number(4) == 0 ? random_number(20) : random_number(1400);
	total = head + l4 + pay;
	p->transport = p->network + head;
	p->payload = p->transport + l4;
	p->len = p->network + total + (p->padded ? 1 + random_number(20) : 0);
	if (p->tagged)
		put16(p->data + 12, 0x8100);
	put16(p->data + p->network - 2, p->v6 ? 0x86dd : 0x0800);
	put_network(p, head, total, (uint8_t)(random_number(22) << 2 | random_number(4)));
	if (p->tcp)
		p->data[p->transport + 12] = (uint8_t)(l4 / 4 << 4);
	else
		put16(p->data + p->transport + 4, l4 + pay);
	set_checks(p);
}

/* The same packet with bytes put in, or taken out (negative), behind the transport header; lengths
 * follow, checksums do not. */
static void resize(struct packet *p, uint32_t at, int by)
{
	uint8_t *ip = p->data + p->network;

	if (by >= 0)
		memmove(p->data + at + by, p->data + at, p->len - at);
	else
		memmove(p->data + at, p->data + at - by, p->len - at - (uint32_t)-by);
	p->len = (uint32_t)((int)p->len + by);
	put16(ip + (p->v6 ? 4 : 2), (uint32_t)((int)get16(ip + (p->v6 ? 4 : 2)) + by));
	if (!p->tcp)
		put16(p->data + p->transport + 4,
			(uint32_t)((int)get16(p->data + p->transport + 4) + by));
}

/* A switch on the way adds a block in front of the others, and keeps the checksum right. */
__attribute__((unused)) static void add_transit(struct packet *p)
{
	uint8_t *shim = p->data + p->payload;
	const uint32_t words = shim[6] & 0x1f;

	resize(p, p->payload + 16, (int)(4 * words));
	for (uint32_t i = 0; i < 4 * words; i++)
		shim[16 + i] = (uint8_t)random_number(256);
	shim[1] = (uint8_t)(shim[1] + words);
	shim[7]--;
	set_checks(p);
}
