//===- GenerationConfig.cpp - what the files beside a model say ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/ChatTemplate.h"
#include "codegen/tokenizer/JsonNode.h"
#include "codegen/tokenizer/Tokenizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>

namespace tenon::codegen {

namespace {

/// The text of a file, or nothing if there is none.
std::optional<std::string>
readIfThere(llvm::StringRef folder, llvm::StringRef file, std::string &path) {
  llvm::SmallString<128> full(folder);
  llvm::sys::path::append(full, file);
  path = full.str().str();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}

/// "eos_token_id": one id or several.
void readStopIds(const JsonNode &node, std::vector<uint32_t> &ids) {
  if (!node)
    return;
  auto add = [&](const JsonNode &id) {
    uint64_t value = id.number();
    if (value < rt::maxTokenIds && !llvm::is_contained(ids, uint32_t(value)))
      ids.push_back(uint32_t(value));
  };
  if (!node.isArray())
    return add(node);
  for (const JsonNode &id : node.elements())
    add(id);
}

/// Greedy unless the file asks for sampling, as `transformers` does.
void readSampling(const JsonNode &root, rt::GenerationDefaults &defaults) {
  auto real = [&](llvm::StringRef name, double missing) {
    return float(std::clamp(root[name].real(missing), 0.0, 1e6));
  };
  bool samples = root["do_sample"].boolean(false);
  defaults.temperature = samples ? real("temperature", 1) : 0;
  defaults.topP = real("top_p", 1);
  defaults.minP = real("min_p", 0);
  // The library's own default is 50, but only files that sample mean it.
  defaults.topK = uint32_t(std::min<uint64_t>(
      root["top_k"].number(samples ? 50 : 0), rt::maxTokenIds));
  defaults.repetitionPenalty = real("repetition_penalty", 1);
}

/// Known ways to write a chat, by something only their templates contain.
struct KnownChat {
  llvm::StringRef sign;
  const char *begin, *userBegin, *userEnd, *assistantBegin, *assistantEnd;
};
constexpr KnownChat knownChats[] = {
    {"<|im_start|>", "", "<|im_start|>user\n", "<|im_end|>\n",
     "<|im_start|>assistant\n", "<|im_end|>\n"},
    {"<|start_header_id|>", "<|begin_of_text|>",
     "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>",
     "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
    {"<start_of_turn>", "<bos>", "<start_of_turn>user\n", "<end_of_turn>\n",
     "<start_of_turn>model\n", "<end_of_turn>\n"},
    {"<|end|>", "", "<|user|>\n", "<|end|>\n", "<|assistant|>\n", "<|end|>\n"},
    {"[INST]", "<s>", "[INST] ", " [/INST]", "", "</s>"},
    {"<|user|>", "", "<|user|>\n", "</s>\n", "<|assistant|>\n", "</s>\n"},
};

/// A token of tokenizer_config.json: its text, or an object with it.
std::string tokenText(const JsonNode &token) {
  if (!token)
    return "";
  return token.isString() ? token.string().str()
                          : token["content"].string("").str();
}

/// By what the template writes; where that is not understood, by its look.
void readChat(llvm::StringRef chatTemplate, GenerationConfig &config,
              llvm::StringRef bos, llvm::StringRef eos) {
  llvm::Expected<ChatParts> parts = readChatTemplate(chatTemplate, bos, eos);
  if (parts) {
    config.begin = parts->begin;
    config.userBegin = parts->userBegin;
    config.userEnd = parts->userEnd;
    config.assistantBegin = parts->assistantBegin;
    config.assistantEnd = parts->assistantEnd;
    return;
  }
  llvm::consumeError(parts.takeError());
  for (const KnownChat &known : knownChats) {
    if (!chatTemplate.contains(known.sign))
      continue;
    config.begin = known.begin;
    config.userBegin = known.userBegin;
    config.userEnd = known.userEnd;
    config.assistantBegin = known.assistantBegin;
    config.assistantEnd = known.assistantEnd;
    return;
  }
}

/// What tokenizer_config.json says; the template may also be a file of its own.
struct TokenizerConfig {
  std::string bos, eos, chat;
};

TokenizerConfig readTokenizerConfig(const JsonNode &root) {
  TokenizerConfig config = {tokenText(root["bos_token"]),
                            tokenText(root["eos_token"]), ""};
  JsonNode chat = root["chat_template"];
  if (chat && chat.isString())
    config.chat = chat.string().str();
  // Several by name: the one for plain chats is "default".
  if (chat && chat.isArray())
    for (const JsonNode &entry : chat.elements())
      if (entry["name"].string("") == "default")
        config.chat = entry["template"].string("").str();
  return config;
}

} // namespace

llvm::Expected<GenerationConfig> readGenerationConfig(llvm::StringRef folder) {
  GenerationConfig config;
  TokenizerConfig words;
  std::string path;
  auto read =
      [&](llvm::StringRef file,
          llvm::function_ref<void(const JsonNode &)> use) -> llvm::Error {
    std::optional<std::string> text = readIfThere(folder, file, path);
    if (!text)
      return llvm::Error::success();
    llvm::Expected<JsonDocument> document = JsonDocument::parse(*text, path);
    if (!document)
      return document.takeError();
    use(JsonNode(*document));
    return document->takeError();
  };
  if (llvm::Error error = read("config.json", [&](const JsonNode &root) {
        readStopIds(root["eos_token_id"], config.stopIds);
        config.defaults.contextLength = uint32_t(std::min<uint64_t>(
            root["max_position_embeddings"].number(0), INT32_MAX));
      }))
    return error;
  if (llvm::Error error =
          read("generation_config.json", [&](const JsonNode &root) {
            readStopIds(root["eos_token_id"], config.stopIds);
            readSampling(root, config.defaults);
          }))
    return error;
  if (llvm::Error error =
          read("tokenizer_config.json", [&](const JsonNode &root) {
            words = readTokenizerConfig(root);
          }))
    return error;
  if (!words.eos.empty())
    config.stopTokens.push_back(words.eos);
  if (auto text = readIfThere(folder, "chat_template.jinja", path))
    words.chat = *text;
  if (!words.chat.empty())
    readChat(words.chat, config, words.bos, words.eos);
  return config;
}

} // namespace tenon::codegen
