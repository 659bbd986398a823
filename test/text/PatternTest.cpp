//===- PatternTest.cpp - patterns, UTF-8, normal forms -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Tokenizer.h"
#include "runtime/text/Regex.h"
#include "runtime/text/Unicode.h"
#include "runtime/text/Utf8.h"
#include "gtest/gtest.h"

using namespace tenon;

namespace {

/// The matches of an Oniguruma pattern, each in brackets.
std::string matches(llvm::StringRef pattern, std::string_view text) {
  auto translated = codegen::translatePattern(pattern);
  if (!translated)
    return llvm::toString(translated.takeError());
  auto regex = rt::Regex::compile(*translated);
  if (!regex.ok())
    return regex.message();
  std::vector<rt::Match> found;
  rt::Status status = regex->findAll(text, found);
  std::string out;
  for (rt::Match match : found)
    out += "[" +
           std::string(text.substr(match.begin, match.end - match.begin)) + "]";
  return status.ok() ? out : status.message();
}

TEST(Pattern, RubyRepeatsWherePcreIsPossessive) {
  EXPECT_EQ(matches("a{2}+a", "aaaaa"), "[aaaaa]");
  EXPECT_EQ(matches("(?:ab){1,2}+", "ababab"), "[ababab]");
  EXPECT_EQ(matches("a{,2}b", "aaab"), "[aab]");
  EXPECT_EQ(matches("x{y", "x{y"), "[x{y]");
  EXPECT_EQ(matches("a++a", "aaa"), ""); // possessive in both
}

TEST(Pattern, ShorthandsAreUnicode) {
  EXPECT_EQ(matches("\\s+", "a\xc2\xa0\xe3\x80\x80z"),
            "[\xc2\xa0\xe3\x80\x80]");
  EXPECT_EQ(matches("\\s", "\xe1\xa0\x8e"), ""); // U+180E is no longer a space
  EXPECT_EQ(matches("\\w+", "e\xcc\x81_1 \xc2\xbd"), "[e\xcc\x81_1][\xc2\xbd]");
  EXPECT_EQ(matches("[^\\S\\n]+", "a \t\n b"), "[ \t][ ]");
  EXPECT_EQ(matches("\\h+", "xfaceg"), "[face]");
  EXPECT_EQ(matches("\\u00e9", "\xc3\xa9"), "[\xc3\xa9]");
}

TEST(Pattern, OptionsAndLines) {
  EXPECT_EQ(matches("(?m).+", "a\nb"), "[a\nb]");
  EXPECT_EQ(matches("^b$", "a\nb\nc"), "[b]");
  EXPECT_EQ(matches("(?i:'s)", "'S 's"), "['S]['s]");
}

TEST(Pattern, EmptyMatchesMoveOn) {
  EXPECT_EQ(matches("a*", "baac"), "[][aa][]");
  EXPECT_EQ(matches("(?=b)", "abab"), "[][]");
}

TEST(Pattern, RefusesWhatDiffers) {
  EXPECT_NE(matches("[a&&b]", "").find("intersection"), std::string::npos);
  EXPECT_NE(matches("[a[b]]", "").find("class inside"), std::string::npos);
  EXPECT_NE(matches("(?x: a )", "").find("option 'x'"), std::string::npos);
  EXPECT_NE(matches("[ab", "").find("without an end"), std::string::npos);
  EXPECT_NE(matches("(ab", "").find("pattern '(ab'"), std::string::npos);
  EXPECT_NE(matches("\\", "").find("backslash"), std::string::npos);
}

TEST(Pattern, GivesUpInsteadOfRunningForHours) {
  std::string hard(40, 'a');
  EXPECT_NE(matches("(a+)+$", hard + "b").find("failed on this text"),
            std::string::npos);
}

TEST(Utf8, RepairsAsUnicodeSays) {
  EXPECT_EQ(rt::repairUtf8("a\xff\xe2\x82z\xed\xa0\x80\xf0\x9f\x98"),
            "a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
            "\xef\xbf\xbd");
  EXPECT_EQ(rt::validUtf8Prefix("12345678\xc3"), 8u);
  EXPECT_EQ(rt::repairUtf8("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

TEST(Unicode, NormalForms) {
  auto form = [](std::string_view text, rt::NormalForm form) {
    std::string out;
    rt::appendNormalized(out, text, form);
    return out;
  };
  EXPECT_EQ(form("xe\xcc\x81 z", rt::NormalForm::Nfc), "x\xc3\xa9 z");
  EXPECT_EQ(form("\xc3\xa9", rt::NormalForm::Nfd), "e\xcc\x81");
  EXPECT_EQ(form("\xef\xac\x81", rt::NormalForm::Nfkc), "fi");
  // Marks in canonical order: below (220) before above (230).
  EXPECT_EQ(form("q\xcc\x87\xcc\xa3", rt::NormalForm::Nfd),
            "q\xcc\xa3\xcc\x87");
}

} // namespace
