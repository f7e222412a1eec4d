// The module table as untrusted input: whatever its bytes are, opening it ends in OK or in an error of a known class,
// and a table that opens can be read and run through to its end.
#include "Demo.h"

extern "C" {
#include "runtime/src/table.h"
}

#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <memory>

using namespace demo;

namespace {

/// The demo's table in a heap block of exactly its size, so that ASan sees every step outside.
struct Copy {
  std::unique_ptr<uint64_t[]> words;
  uint64_t size;
  vmpk_error_t error{};
  vmpk_table_t table{};

  Copy() {
    vmpk_entry_t entry{};
    entry.size = sizeof entry;
    EXPECT_EQ(demo_query(VMPK_ABI_VERSION, &entry), VMPK_STATUS_OK);
    size = entry.table_size;
    words = std::make_unique<uint64_t[]>((size + 7) / 8);
    std::memcpy(words.get(), entry.table, size);
  }
  uint8_t *bytes() { return reinterpret_cast<uint8_t *>(words.get()); }
  vmpk_table_header_t &header() { return *reinterpret_cast<vmpk_table_header_t *>(words.get()); }
  vmpk_table_function_t &function(uint32_t i) {
    return reinterpret_cast<vmpk_table_function_t *>(bytes() + header().functions.offset)[i];
  }
  vmpk_table_tensor_t &input(uint32_t f, uint32_t i) {
    return reinterpret_cast<vmpk_table_tensor_t *>(bytes() + function(f).inputs.offset)[i];
  }
  vmpk_status_t open() { return vmpk_table_open(bytes(), size, &table, &error); }
};

/// Touches every byte that the accessors can reach.
uint64_t readThrough(const vmpk_table_t &table) {
  uint64_t sum = 0;
  auto add = [&](vmpk_span_t span) {
    for (char c : text(vmpk_table_text(&table, span)))
      sum += static_cast<uint8_t>(c);
  };
  auto tensors = [&](vmpk_span_t span) {
    for (uint32_t i = 0; i < span.count; ++i) {
      const vmpk_table_tensor_t *tensor = vmpk_table_tensor_at(&table, span, i);
      add(tensor->name);
      for (uint32_t axis = 0; axis < tensor->dims.count; ++axis)
        sum += static_cast<uint64_t>(vmpk_table_shape(&table, tensor)[axis]);
    }
  };
  add(table.header->name);
  for (uint32_t i = 0; i < table.header->functions.count; ++i) {
    const vmpk_table_function_t *function = vmpk_table_function_at(&table, i);
    add(function->name);
    for (uint32_t k = 0; k < function->dims.count; ++k)
      add(vmpk_table_dim_at(&table, function, k)->name);
    tensors(function->inputs);
    tensors(function->outputs);
  }
  for (uint32_t i = 0; i < table.header->dispatches.count; ++i) {
    add(vmpk_table_dispatch_at(&table, i)->name);
    add(vmpk_table_dispatch_at(&table, i)->location);
  }
  for (uint32_t i = 0; i < table.header->imports.count; ++i)
    add(vmpk_table_import_at(&table, i)->name);
  return sum;
}

void expectKnown(Copy &copy, const std::function<std::string()> &where) {
  vmpk_status_t status = copy.open();
  if (status == VMPK_STATUS_OK) {
    readThrough(copy.table);
    return;
  }
  EXPECT_TRUE(status == VMPK_STATUS_CORRUPT || status == VMPK_STATUS_VERSION_MISMATCH) << where() << status;
  EXPECT_NE(copy.error.message[0], 0) << where();
  EXPECT_EQ(copy.table.bytes, nullptr) << where();
}

TEST(Table, opens) {
  Copy copy;
  ASSERT_EQ(copy.open(), VMPK_STATUS_OK) << copy.error.message;
  EXPECT_NE(readThrough(copy.table), 0u);
}

TEST(Table, everyFlippedByte) {
  Copy original;
  for (uint64_t at = 0; at < original.size; ++at)
    for (int flip : {0x01, 0x02, 0x08, 0x40, 0x80, 0xff}) {
      Copy copy;
      copy.bytes()[at] ^= static_cast<uint8_t>(flip);
      expectKnown(copy, [&] { return "byte " + std::to_string(at) + " ^ " + std::to_string(flip) + ": "; });
    }
}

TEST(Table, everyTruncation) {
  Copy original;
  for (uint64_t size = 0; size < original.size; ++size) {
    Copy copy;
    auto words = std::make_unique<uint64_t[]>((size + 7) / 8);
    std::memcpy(words.get(), copy.bytes(), size);
    copy.words = std::move(words);
    copy.size = size;
    EXPECT_EQ(copy.open(), VMPK_STATUS_CORRUPT) << size;
    // a table that says it is that short must hold together within its size
    if (size >= sizeof(vmpk_table_header_t)) {
      copy.header().table_size = size;
      expectKnown(copy, [&] { return "size " + std::to_string(size) + ": "; });
    }
  }
}

TEST(Table, everyWordAtItsExtremes) {
  Copy original;
  for (uint64_t at = 0; at + 4 <= original.size; at += 4)
    for (uint32_t value : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xfffffff8u, 0xffffffffu}) {
      Copy copy;
      std::memcpy(copy.bytes() + at, &value, 4);
      expectKnown(copy, [&] { return "word at " + std::to_string(at) + " = " + std::to_string(value) + ": "; });
    }
}

struct Row {
  const char *message;
  vmpk_status_t status;
  std::function<void(Copy &)> damage;
};

TEST(Table, saysWhatIsWrong) {
  const Row rows[] = {
      {"module table: it does not begin with VMPKTBL1", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.header().magic[7] = '2'; }},
      {"the module's table has abi version 0, this runtime reads 1 and later: package the model again",
       VMPK_STATUS_VERSION_MISMATCH, [](Copy &c) { c.header().abi_version = 0; }},
      {"module table: header size is 8 when it should be 160", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.header().size = 8; }},
      {"module table: function_size is 32 when it should be 40", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.header().function_size = 32; }},
      {"module table: dispatch 0: the count of an array that does not fit is 4294967295", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.header().dispatches.count = UINT32_MAX; }},
      {"module table: functions 0: the unaligned offset of an array is 4", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.header().functions.offset = 4; }},
      {"module table: function 0, input 1: dtype is 14", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.input(0, 1).dtype = 14; }},
      {"module table: function 0, input 0: rank is 17", VMPK_STATUS_CORRUPT,
       [](Copy &c) {
         c.input(0, 0).dims.offset = 0;
         c.input(0, 0).dims.count = 17;
       }},
      {"module table: function 0: a symbolic dim that no input has is 0", VMPK_STATUS_CORRUPT,
       [](Copy &c) { c.function(0).inputs.count = 0; }},
  };
  for (const Row &row : rows) {
    Copy copy;
    row.damage(copy);
    EXPECT_EQ(copy.open(), row.status) << row.message;
    EXPECT_EQ(copy.error.message, std::string(row.message));
  }
}

// A later version's rows are longer; today's runtime steps over what it does not know.
TEST(Table, readsLongerRows) {
  Copy copy;
  vmpk_table_header_t &header = copy.header();
  const uint32_t stride = header.import_size + 8;
  auto words = std::make_unique<uint64_t[]>((copy.size + 7) / 8 + 2 * stride / 8);
  const uint64_t at = (copy.size + 7) / 8 * 8;
  std::memcpy(words.get(), copy.bytes(), copy.size);
  auto *bytes = reinterpret_cast<uint8_t *>(words.get());
  std::memcpy(bytes + at, copy.bytes() + header.imports.offset, header.import_size);
  std::memcpy(bytes + at + stride, copy.bytes() + header.imports.offset, header.import_size);
  copy.words = std::move(words);
  copy.size = at + 2 * stride;
  copy.header().table_size = copy.size;
  copy.header().import_size = stride;
  copy.header().imports = {static_cast<uint32_t>(at), 2};
  ASSERT_EQ(copy.open(), VMPK_STATUS_OK) << copy.error.message;
  EXPECT_EQ(text(vmpk_table_text(&copy.table, vmpk_table_import_at(&copy.table, 1)->name)), "demo.scale");
}

} // namespace
