//===- Pattern.cpp - regular expressions from Oniguruma to PCRE2 ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Tokenizer.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace tenon::codegen {

namespace {

// White_Space, and everything else, as the inside of a class.
constexpr llvm::StringLiteral spaces =
    "\\x09-\\x0d \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"
    "\\x{202f}\\x{205f}\\x{3000}";
constexpr llvm::StringLiteral notSpaces =
    "\\x00-\\x08\\x0e-\\x1f!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-"
    "\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
// Oniguruma counts Latin-1's superscripts and fractions among them.
constexpr llvm::StringLiteral wordCharacters =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
constexpr llvm::StringLiteral hexDigits = "0-9A-Fa-f";

/// Long names of general categories, which PCRE2 does not know.
llvm::StringRef propertyName(llvm::StringRef name) {
  return llvm::StringSwitch<llvm::StringRef>(name.lower())
      .Case("letter", "L")
      .Case("uppercase_letter", "Lu")
      .Case("lowercase_letter", "Ll")
      .Case("titlecase_letter", "Lt")
      .Case("modifier_letter", "Lm")
      .Case("other_letter", "Lo")
      .Case("mark", "M")
      .Case("nonspacing_mark", "Mn")
      .Case("spacing_mark", "Mc")
      .Case("enclosing_mark", "Me")
      .Case("number", "N")
      .Case("decimal_number", "Nd")
      .Case("letter_number", "Nl")
      .Case("other_number", "No")
      .Cases("punctuation", "punct", "P")
      .Case("symbol", "S")
      .Case("math_symbol", "Sm")
      .Case("currency_symbol", "Sc")
      .Case("separator", "Z")
      .Case("space_separator", "Zs")
      .Case("other", "C")
      .Case("control", "Cc")
      .Case("format", "Cf")
      .Case("alpha", "Alphabetic")
      .Case("digit", "Nd")
      .Case("upper", "Uppercase")
      .Case("lower", "Lowercase")
      .Default(name);
}

/// Walks a pattern once; `out` grows by its translation.
class Translator {
public:
  explicit Translator(llvm::StringRef pattern) : pattern(pattern) {}

  llvm::Expected<std::string> run() {
    while (at < pattern.size() && problem.empty())
      step();
    if (problem.empty())
      return std::move(out);
    return userError("pattern '{0}': {1} at byte {2}", pattern, problem, at);
  }

private:
  llvm::StringRef rest() const { return pattern.substr(at); }
  void fail(const llvm::Twine &message) { problem = message.str(); }

  void take(size_t count) {
    out += rest().take_front(count);
    at += count;
  }
  /// Replaces `count` bytes of the pattern.
  void replace(size_t count, const llvm::Twine &with) {
    out += with.str();
    at += count;
  }

  void step() {
    char c = pattern[at];
    if (c == '(') {
      groups.push_back(out.size());
      if (rest().starts_with("(?"))
        return groupHead();
      take(1);
    } else if (c == ')') {
      atom = groups.empty() ? out.size() : groups.pop_back_val();
      take(1);
    } else if (c == '[') {
      atom = out.size();
      characterClass();
    } else if (c == '\\') {
      atom = out.size();
      escape(/*inClass=*/false);
    } else if (c == '{') {
      interval();
    } else {
      if (!llvm::StringRef("*+?|").contains(c))
        atom = out.size();
      take(1);
    }
  }

  /// "(?i-m:" and so on: Ruby's m is PCRE's s; ^ and $ always match at lines.
  void groupHead() {
    size_t end = at + 2;
    while (end < pattern.size() &&
           (llvm::isAlpha(pattern[end]) || pattern[end] == '-'))
      ++end;
    bool isFlags = end > at + 2 && end < pattern.size() &&
                   (pattern[end] == ':' || pattern[end] == ')');
    if (!isFlags)
      return take(2);
    std::string flags = pattern.slice(at + 2, end).str();
    for (char &flag : flags) {
      if (flag != 'i' && flag != 'm' && flag != '-')
        return fail("unsupported option '" + llvm::Twine(flag) +
                    "', expected i or m");
      if (flag == 'm')
        flag = 's';
    }
    if (pattern[end] == ')') {
      if (!groups.empty())
        groups.pop_back();
    }
    replace(end + 1 - at,
            "(?" + llvm::Twine(flags) + pattern.slice(end, end + 1));
  }

  /// "{2,3}", and what follows it: "{2,3}+" repeats, it isn't possessive.
  void interval() {
    size_t close = rest().find('}');
    llvm::StringRef inside =
        close == llvm::StringRef::npos ? "" : rest().slice(1, close);
    auto [low, high] = inside.split(',');
    bool comma = inside.contains(',');
    auto isCount = [](llvm::StringRef text) {
      return llvm::all_of(text, llvm::isDigit);
    };
    if (inside.empty() || inside == "," || !isCount(low) || !isCount(high))
      return replace(1, "\\{"); // a brace as it stands
    std::string text =
        ("{" + (low.empty() ? "0" : low) + (comma ? "," : "") + high + "}")
            .str();
    replace(close + 1, text);
    if (rest().starts_with("+")) {
      out.insert(atom, "(?:");
      replace(1, ")+");
    } else if (rest().starts_with("?") && !comma) {
      out.insert(atom, "(?:");
      replace(1, ")?");
    }
  }

  void property() {
    size_t close = rest().find('}');
    if (rest().size() < 3 || rest()[2] != '{' || close == llvm::StringRef::npos)
      return take(2);
    llvm::StringRef name = rest().slice(3, close);
    llvm::StringRef negation = name.consume_front("^") ? "^" : "";
    replace(close + 1,
            rest().take_front(2) + "{" + negation + propertyName(name) + "}");
  }

  /// A shorthand for a set, whose inside is known.
  void shorthand(bool inClass, llvm::StringRef set, bool negated) {
    if (inClass)
      replace(2, set);
    else
      replace(2, llvm::Twine(negated ? "[^" : "[") + set + "]");
  }

  void escape(bool inClass) {
    if (rest().size() < 2)
      return fail("a backslash at the end");
    char c = rest()[1];
    switch (c) {
    case 's':
      return shorthand(inClass, spaces, false);
    case 'S':
      return inClass ? replace(2, notSpaces) : shorthand(false, spaces, true);
    case 'w':
      return shorthand(inClass, wordCharacters, false);
    case 'h':
      return shorthand(inClass, hexDigits, false);
    case 'W':
    case 'H':
      if (inClass)
        return fail("unsupported \\" + llvm::Twine(c) + " in a class");
      return shorthand(false,
                       c == 'W' ? llvm::StringRef(wordCharacters)
                                : llvm::StringRef(hexDigits),
                       true);
    case 'p':
    case 'P':
      return property();
    case 'u':
      if (rest().size() < 6 ||
          !llvm::all_of(rest().slice(2, 6), llvm::isHexDigit))
        return fail("\\u without four hexadecimal digits");
      return replace(6, "\\x{" + rest().slice(2, 6) + "}");
    case 'y':
    case 'Y':
    case 'O':
      return fail("unsupported \\" + llvm::Twine(c));
    default: {
      // A backslash and a whole character.
      size_t length = 2;
      while (length < rest().size() && (rest()[length] & 0xc0) == 0x80)
        ++length;
      return take(length);
    }
    }
  }

  void characterClass() {
    take(1);
    if (rest().starts_with("^"))
      take(1);
    if (rest().starts_with("]"))
      take(1);
    while (at < pattern.size() && problem.empty()) {
      char c = pattern[at];
      if (c == ']')
        return take(1);
      if (c == '\\') {
        escape(/*inClass=*/true);
      } else if (rest().starts_with("&&")) {
        return fail("unsupported intersection && of classes");
      } else if (rest().starts_with("[:")) {
        size_t close = rest().find(":]");
        if (close == llvm::StringRef::npos)
          return fail("a class in brackets without an end");
        take(close + 2);
      } else if (c == '[') {
        return fail("unsupported class inside a class");
      } else {
        take(1);
      }
    }
    if (problem.empty())
      fail("a class without an end");
  }

  llvm::StringRef pattern;
  size_t at = 0;
  std::string out, problem;
  size_t atom = 0; ///< where the last atom begins in `out`
  llvm::SmallVector<size_t> groups;
};

} // namespace

llvm::Expected<std::string> translatePattern(llvm::StringRef pattern) {
  return Translator(pattern).run();
}

} // namespace tenon::codegen
