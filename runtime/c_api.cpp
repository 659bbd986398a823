//===- c_api.cpp - the C interface of a compiled model ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api.h"

#include "runtime/Cpu.h"
#include "runtime/LanguageModel.h"
#include "runtime/Payload.h"
#include "runtime/Session.h"
#include "runtime/TextCodec.h"

#include <algorithm>
#include <optional>

using namespace tenon::rt;

static_assert(unsigned(TENON_F4E2M1) == unsigned(DType::F4E2M1) &&
              unsigned(TENON_BOOL) == unsigned(DType::Bool));

struct tenon_model {
  Payload payload;
  Model model;
};

struct tenon_session {
  std::unique_ptr<Session> session;
  std::string error;
  bool ran = false;
};

struct tenon_lm {
  std::unique_ptr<LanguageModel> model;
  std::unique_ptr<TextCodec> codec; ///< null without a tokenizer
  std::string error;
};

namespace {

std::string &openError() {
  static thread_local std::string text;
  return text;
}

bool hasCodec(tenon_lm *lm) {
  if (!lm->codec)
    lm->error = "this library has no tokenizer: compile the model with "
                "--tokenizer=tokenizer.json";
  return lm->codec != nullptr;
}

int report(tenon_session *session, const Status &status) {
  session->error = status.message();
  return status.ok() ? 0 : 1;
}

const char *portName(const Plan &plan, std::span<const Port> ports,
                     size_t index) {
  return index < ports.size() ? plan.string(ports[index].name) : nullptr;
}

} // namespace

extern "C" {

tenon_model *tenon_open(void) {
  auto fail = [](std::string message) -> tenon_model * {
    openError() = std::move(message);
    return nullptr;
  };
  auto payload = Payload::openContaining(&tenon_num_forms);
  if (!payload.ok())
    return fail(payload.message());
  auto model = openModel(*payload, {tenon_forms, tenon_num_forms});
  if (!model.ok())
    return fail(model.message());
  return new tenon_model{std::move(*payload), std::move(*model)};
}

const char *tenon_open_error(void) { return openError().c_str(); }

void tenon_close(tenon_model *model) { delete model; }

size_t tenon_num_inputs(const tenon_model *model) {
  return model->model.plan().inputs().size();
}

size_t tenon_num_outputs(const tenon_model *model) {
  return model->model.plan().outputs().size();
}

const char *tenon_input_name(const tenon_model *model, size_t index) {
  const Plan &plan = model->model.plan();
  return portName(plan, plan.inputs(), index);
}

const char *tenon_output_name(const tenon_model *model, size_t index) {
  const Plan &plan = model->model.plan();
  return portName(plan, plan.outputs(), index);
}

const char *tenon_manifest(const tenon_model *model) {
  const Plan &plan = model->model.plan();
  return plan.string(plan.header().manifest);
}

tenon_session *tenon_session_create(const tenon_model *model,
                                    unsigned threads) {
  auto session = Session::create(model->model, threads);
  if (!session.ok()) {
    openError() = session.message();
    return nullptr;
  }
  return new tenon_session{std::move(*session), "", false};
}

void tenon_session_destroy(tenon_session *session) { delete session; }

const char *tenon_session_error(const tenon_session *session) {
  return session->error.c_str();
}

int tenon_set_input(tenon_session *session, const char *name, tenon_dtype dtype,
                    const int64_t *shape, uint32_t rank, const void *data) {
  return report(session, session->session->setInput(name, DType(dtype),
                                                    {shape, rank}, data));
}

int tenon_set_input_at(tenon_session *session, size_t index, tenon_dtype dtype,
                       const int64_t *shape, uint32_t rank, const void *data) {
  return report(session, session->session->setInput(index, DType(dtype),
                                                    {shape, rank}, data));
}

int tenon_set_output_at(tenon_session *session, size_t index, void *data,
                        uint64_t capacity) {
  return report(session, session->session->setOutput(index, data, capacity));
}

int tenon_run(tenon_session *session) {
  int failed = report(session, session->session->run());
  session->ran = !failed;
  return failed;
}

int tenon_get_output(tenon_session *session, size_t index,
                     tenon_tensor *tensor) {
  const Plan &plan = session->session->model().plan();
  if (!session->ran)
    return report(session, TN_ERROR("no outputs before a successful run"));
  if (index >= plan.outputs().size())
    return report(session, TN_ERROR("no output number %zu; the model has %zu",
                                    index, plan.outputs().size()));
  const OutputValue &value = session->session->output(index);
  *tensor = {tenon_dtype(value.dtype), uint32_t(value.shape.size()),
             value.shape.data(), value.data, value.bytes};
  return 0;
}

int tenon_get_output_named(tenon_session *session, const char *name,
                           tenon_tensor *tensor) {
  const Plan &plan = session->session->model().plan();
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (std::strcmp(plan.string(plan.outputs()[i].name), name) == 0)
      return tenon_get_output(session, i, tensor);
  return report(session, TN_ERROR("no output '%s'",
                                  printable(std::string(name)).c_str()));
}

tenon_lm *tenon_lm_create(const tenon_model *model, unsigned threads) {
  return tenon_lm_create_rows(model, threads, 1);
}

tenon_lm *tenon_lm_create_rows(const tenon_model *model, unsigned threads,
                               size_t rows) {
  auto lm = LanguageModel::create(model->model, threads, rows);
  if (!lm.ok()) {
    openError() = lm.message();
    return nullptr;
  }
  std::unique_ptr<TextCodec> codec;
  if (Bytes table = model->payload.text();
      !table.empty() && tenon_make_text_codec) {
    auto made = tenon_make_text_codec(table);
    if (!made.ok()) {
      openError() = made.message();
      return nullptr;
    }
    codec = std::move(*made);
  }
  return new tenon_lm{std::move(*lm), std::move(codec), ""};
}

void tenon_lm_destroy(tenon_lm *lm) { delete lm; }

const char *tenon_lm_error(const tenon_lm *lm) { return lm->error.c_str(); }

int64_t tenon_lm_vocabulary(const tenon_lm *lm) {
  return lm->model->vocabulary();
}

int64_t tenon_lm_capacity(const tenon_lm *lm) { return lm->model->capacity(); }

int64_t tenon_lm_position(const tenon_lm *lm) { return lm->model->position(); }

size_t tenon_lm_rows(const tenon_lm *lm) { return lm->model->rows(); }

int tenon_lm_feed(tenon_lm *lm, const int64_t *tokens, size_t count) {
  return tenon_lm_feed_rows(lm, tokens, nullptr, count);
}

int tenon_lm_feed_rows(tenon_lm *lm, const int64_t *tokens, const uint8_t *real,
                       size_t count) {
  std::span<const uint8_t> flags;
  if (real)
    flags = {real, count};
  Status status = lm->model->feed({tokens, count}, flags);
  lm->error = status.message();
  return status.ok() ? 0 : 1;
}

const float *tenon_lm_logits(const tenon_lm *lm) {
  return lm->model->logits().data();
}

const float *tenon_lm_logits_row(const tenon_lm *lm, size_t row) {
  return row < lm->model->rows() ? lm->model->logits(row).data() : nullptr;
}

void tenon_lm_reset(tenon_lm *lm) { lm->model->reset(); }

int64_t tenon_lm_encode(tenon_lm *lm, const char *text, size_t length,
                        int special, int64_t *tokens, size_t capacity) {
  if (!hasCodec(lm))
    return -1;
  std::vector<uint32_t> ids;
  Status status = lm->codec->encode({text, length}, special != 0, ids);
  lm->error = status.message();
  if (!status.ok())
    return -1;
  std::copy_n(ids.begin(), std::min(capacity, ids.size()), tokens);
  return int64_t(ids.size());
}

int64_t tenon_lm_decode(tenon_lm *lm, const int64_t *tokens, size_t count,
                        int special, char *text, size_t capacity) {
  if (!hasCodec(lm))
    return -1;
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < count; ++i)
    if (tokens[i] >= 0 && tokens[i] < int64_t(maxTokenIds))
      ids.push_back(uint32_t(tokens[i]));
  auto decoded = lm->codec->decode(ids, special == 0);
  lm->error = decoded.message();
  if (!decoded.ok())
    return -1;
  std::copy_n(decoded->begin(), std::min(capacity, decoded->size()), text);
  return int64_t(decoded->size());
}

} // extern "C"
