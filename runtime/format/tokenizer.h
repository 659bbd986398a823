//===- tokenizer.h - the tokenizer an artifact carries ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_TOKENIZER_H
#define TENON_RUNTIME_FORMAT_TOKENIZER_H

/// \file
/// A Hugging Face tokenizer.json as a block of plain structs, with the hash
/// tables and the trie that encoding needs already made, so that starting costs
/// nothing. `codegen/tokenizer` writes it, `runtime/text` reads it. As with the
/// plan, nothing in it is trusted: every index and range is checked on loading.
///
/// Text goes through added tokens, normalisers, pre-tokenisers, the model and
/// the template; ids come back through the decoders. Normalisers,
/// pre-tokenisers and decoders are lists of steps; sequences are flattened.

#include "runtime/format/plan.h"

#include <cstddef>
#include <cstdint>

namespace tenon::rt {

inline constexpr char textMagic[8] = {'T', 'E', 'N', 'O', 'N', 'T', 'X', 'T'};
inline constexpr uint32_t textVersion = 1;
/// More ids than any vocabulary has.
inline constexpr uint32_t maxTokenIds = 1u << 24;

/// Bytes of the string pool.
struct TextString {
  uint32_t offset, length;
};

enum TokenFlags : uint32_t {
  TokenInModel = 1, ///< an id of the model's vocabulary
  TokenAdded = 2,
  TokenSpecial = 4, ///< left out of decoded text
};

/// The token of each id; ids without flags do not exist.
struct TokenEntry {
  TextString text;
  uint32_t flags;
};

/// A BPE merge in an open-addressed table (see mergeHash); free slots have
/// left == none.
struct MergeSlot {
  uint32_t left, right;
  uint32_t rank, merged;
};

/// Node of a double-array trie over bytes: the child for byte b of node n is
/// base[n] + b, if its `parent` is n. Node 0 is the root.
struct TrieNode {
  uint32_t base;
  uint32_t parent; ///< none: a free node
  uint32_t token;  ///< the token that ends here, or none
};

enum AddedFlags : uint32_t {
  AddedSingleWord = 1,
  AddedStripLeft = 2,
  AddedStripRight = 4,
  AddedNormalized = 8,
};

/// A token that is found in the text before the model sees it.
struct AddedEntry {
  TextString content;
  uint32_t id;
  uint32_t flags;
};

enum class TextModel : uint32_t { Bpe, WordPiece, Unigram, WordLevel };

enum class Normalizer : uint8_t {
  Nfc,
  Nfd,
  Nfkc,
  Nfkd,
  Lowercase,
  StripAccents, ///< drops marks (M)
  StripMn,      ///< drops nonspacing marks (Mn), BERT's accents
  Replace,      ///< text `a` by `b`
  ReplaceRegex, ///< matches of pattern `a` by `b`
  Prepend,      ///< `a`, unless empty
  Strip,        ///< flags: 1 left, 2 right
  Nmt,          ///< control characters go, odd spaces become plain
  Precompiled,  ///< SentencePiece's table `a`
  CleanText,    ///< BERT: control characters go, spaces become plain
  SpaceChinese, ///< BERT: spaces around ideographs
  ByteLevel,    ///< each byte as a printable character
  Last = ByteLevel
};

enum class PreTokenizer : uint8_t {
  PrefixSpace, ///< a space in front of each piece that has none
  ByteLevel,   ///< each byte as a printable character
  SplitRegex,  ///< matches of pattern `a`
  SplitText,   ///< occurrences of text `a`
  SplitSpace,  ///< white space
  SplitPunctuation,
  SplitDigits, ///< numeric characters
  Metaspace,   ///< spaces become `a`; flags: 1 prepend always, 2 to the first
               ///< piece only, 4 split there
  FixedLength, ///< pieces of `value` characters
  Last = FixedLength
};

/// What a split does with what was matched.
enum class SplitBehavior : uint8_t {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
  Last = Contiguous
};

enum class TokenDecoder : uint8_t {
  ByteLevel,    ///< the inverse of the printable characters
  WordPiece,    ///< prefix `a` joins words; flags: 1 clean up
  Metaspace,    ///< `a` becomes a space; flags: 1 the first token's goes
  Bpe,          ///< suffix `a` ends words
  ByteFallback, ///< "<0x0A>" is a byte
  Fuse,         ///< all tokens as one
  Strip,        ///< up to flags & 0xffff `a` in front, flags >> 16 behind
  Replace,
  ReplaceRegex,
  Last = ReplaceRegex
};

/// One step of a list; `kind` is a Normalizer, PreTokenizer or TokenDecoder.
struct TextStep {
  uint8_t kind;
  SplitBehavior behavior; ///< of splits
  uint8_t invert;         ///< of splits: what was not matched is the match
  uint8_t reserved;
  uint32_t flags;
  uint32_t value;
  TextString a, b;
};

enum TextFlags : uint32_t {
  TextFuseUnk = 1,
  TextByteFallback = 2,
  TextIgnoreMerges = 4,   ///< a whole word of the vocabulary is one token
  TextSeams = 8,          ///< BPE: `seams` may cut words
  TextJoinWithSpace = 16, ///< no decoder: tokens are joined with spaces
};

/// How a chat is written down; all empty where the model has no template.
/// Turns are: userBegin text userEnd assistantBegin answer assistantEnd.
struct ChatFormat {
  TextString begin, userBegin, userEnd, assistantBegin, assistantEnd;
};

/// What the model's generation config says.
struct GenerationDefaults {
  float temperature; ///< 0: the most probable token
  float topP, minP;
  float repetitionPenalty;
  uint32_t topK;          ///< 0: all
  uint32_t contextLength; ///< 0: not known
};

struct TextHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes;
  uint64_t totalBytes;
  uint64_t textChecksum; ///< computed with itself as 0
  TextModel model;
  uint32_t flags;
  uint32_t unkId;         ///< or none
  uint32_t maxInputChars; ///< WordPiece: longer words are unknown
  TextString continuingPrefix, wordSuffix;
  double unkScore; ///< Unigram: score of an unknown character
  GenerationDefaults defaults;
  ChatFormat chat;
  Table pool;       ///< bytes
  Table tokens;     ///< TokenEntry by id
  Table tokenSlots; ///< uint32_t: open-addressed by tokenHash; ids of the model
  Table merges;     ///< MergeSlot
  Table seams;      ///< uint64_t[1024]: bits by seamHash
  Table scores;     ///< double by id
  Table trie;       ///< TrieNode
  Table byteTokens; ///< uint32_t[256]: tokens of bytes, or none
  Table added;      ///< AddedEntry
  Table normalizers, preTokenizers, decoders; ///< TextStep
  Table post;  ///< uint32_t: special tokens' ids, none is the text
  Table stops; ///< uint32_t: ids that end a generated text
};

/// FNV-1a; the table's size is a power of two, collisions go to the next slot.
inline uint32_t tokenHash(const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < length; ++i)
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ull;
  return uint32_t(hash ^ (hash >> 32));
}

inline uint32_t mergeHash(uint32_t left, uint32_t right) {
  uint64_t key = (uint64_t(left) << 32 | right) * 0x9e3779b97f4a7c15ull;
  return uint32_t(key >> 32);
}

/// Bit number of two adjacent code points in `seams`. A word may be cut between
/// two characters whose bit is not set: no merge ever joins them.
inline uint32_t seamHash(uint32_t first, uint32_t second) {
  return (first * 0x9e3779b1u ^ second * 0x85ebca77u) >> 16;
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_FORMAT_TOKENIZER_H
