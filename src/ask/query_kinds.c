/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the kinds of records that a question reads. */
#include "ask/query_sources.h"
#include "base/complain.h"

int pl_query_kinds_read(const struct pl_asking *a, enum pl_flat_kind *ret)
{
	int n = 0;

	for (int kind = PL_FLAT_MAX - 1; kind >= 0; kind--) {
		if (!pl_query_reads(a->query, (enum pl_flat_kind)kind))
			continue;
		*ret = (enum pl_flat_kind)kind;
		n++;
	}
	return n;
}

bool pl_query_made_of_packets(const struct pl_query *query)
{
	for (int kind = 0; kind < PL_FLAT_MAX; kind++) {
		const bool account = kind == PL_FLAT_LINK128 || kind == PL_FLAT_SENT128;

		if ((!account && kind != PL_FLAT_MARK128 && kind != PL_FLAT_SEG192) ||
			!pl_query_reads(query, (enum pl_flat_kind)kind))
			continue;
		return pl_fail(false,
			account ? "query: accounts of links and flows (truth_links, truth_flows) are not made of packets: 'pathline simulate --truth-history FOLDER' and 'pathline lab truth' write them into the folder of the truth, which is to be named"
				: "query: records of blocks (marks) and of what they come to (segments) are not made of packets: 'pathline meter --write' makes them; files NAME.mark128 and NAME.seg192, regions, topics and udp:// have them");
	}
	return true;
}
