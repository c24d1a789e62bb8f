/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a file of records: there and back, and what is none. */
#include "record/record_file.h"

#include "base/clock_kind.h"
#include "base/test.h"

int main(void)
{
	uint8_t bytes[PL_RECORD_FILE_BYTES], copy[PL_RECORD_FILE_BYTES];
	enum pl_flat_kind kind = PL_FLAT_MAX;
	uint32_t clocks = 0;

	for (int k = 0; k < PL_FLAT_MAX; k++) {
		pl_record_file_make(bytes, (enum pl_flat_kind)k, 1u << PL_STAMP_NIC | 1u << 30);
		eq(pl_record_file_read(bytes, &kind, &clocks), PL_RECORD_FILE_GOOD);
		ok(kind == (enum pl_flat_kind)k && clocks == 1u << PL_STAMP_NIC, "%s",
			pl_flat(kind)->name);
		/* Whatever byte in front of the clocks differs: another version or kind, or no header. */
		for (int i = 0; i < PL_RECORD_FILE_CLOCKS; i++) {
			memcpy(copy, bytes, sizeof(copy));
			copy[i] ^= 0x80;
			ok(pl_record_file_read(copy, &kind, &clocks) ==
					(i < 8 ? PL_RECORD_FILE_NONE : PL_RECORD_FILE_BAD),
				"byte %d", i);
		}
		/* Room for more: what is behind is not looked at. */
		bytes[PL_RECORD_FILE_BYTES - 1] = 7;
		eq(pl_record_file_read(bytes, &kind, &clocks), PL_RECORD_FILE_GOOD);
	}
	memset(bytes, 0, sizeof(bytes));
	eq(pl_record_file_read(bytes, &kind, &clocks), PL_RECORD_FILE_NONE, "a record");
	return pl_test_done();
}
