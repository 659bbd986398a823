//===- c_api.h - the C interface of a compiled model --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_C_API_H
#define TENON_RUNTIME_C_API_H

/*
 * A shared library made by `tenon compile MODEL.onnx -o libmodel.so` exports
 * these functions. One tenon_model can serve many sessions at the same time;
 * one session is for one thread at a time.
 *
 *   tenon_model *model = tenon_open();
 *   tenon_session *session = tenon_session_create(model, 0);
 *   int64_t shape[2] = {1, 128};
 *   if (tenon_set_input(session, "ids", TENON_I64, shape, 2, ids) ||
 *       tenon_run(session))
 *     fprintf(stderr, "%s\n", tenon_session_error(session));
 *   tenon_tensor out;
 *   tenon_get_output(session, 0, &out);
 *
 * Functions that return int give 0 on success; the message of the last failure
 * is at tenon_session_error().
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TENON_API
#define TENON_API __attribute__((visibility("default")))
#endif

/** Element types. Those below 8 bits are packed, the first in the low bits. */
typedef enum tenon_dtype {
  TENON_F64,
  TENON_F32,
  TENON_F16,
  TENON_BF16,
  TENON_I64,
  TENON_I32,
  TENON_I16,
  TENON_I8,
  TENON_U64,
  TENON_U32,
  TENON_U16,
  TENON_U8,
  TENON_BOOL,
  TENON_I4,
  TENON_U4,
  TENON_I2,
  TENON_U2,
  TENON_F8E4M3FN,
  TENON_F8E4M3FNUZ,
  TENON_F8E5M2,
  TENON_F8E5M2FNUZ,
  TENON_F8E8M0,
  TENON_F4E2M1
} tenon_dtype;

typedef struct tenon_model tenon_model;
typedef struct tenon_session tenon_session;

/** A tensor in C order. Elements below a byte are packed, the first in the low
 * bits; all dimensions count elements. */
typedef struct tenon_tensor {
  tenon_dtype dtype;
  uint32_t rank;
  const int64_t *shape;
  void *data;
  uint64_t bytes;
} tenon_tensor;

/** Opens the model in this library; null on failure, see tenon_open_error(). */
TENON_API tenon_model *tenon_open(void);
/** Why the last tenon_open() or tenon_session_create() of this thread failed.
 */
TENON_API const char *tenon_open_error(void);
/** Close its sessions first. */
TENON_API void tenon_close(tenon_model *model);

TENON_API size_t tenon_num_inputs(const tenon_model *model);
TENON_API size_t tenon_num_outputs(const tenon_model *model);
/** Names as in the model; null when there is no such input or output. */
TENON_API const char *tenon_input_name(const tenon_model *model, size_t index);
TENON_API const char *tenon_output_name(const tenon_model *model, size_t index);
/** JSON: the model's hash, the compiler's version and flags. */
TENON_API const char *tenon_manifest(const tenon_model *model);

/** threads 0: as many as there are cores this process may use. */
TENON_API tenon_session *tenon_session_create(const tenon_model *model,
                                              unsigned threads);
TENON_API void tenon_session_destroy(tenon_session *session);
TENON_API const char *tenon_session_error(const tenon_session *session);

/** Gives an input. The data are not copied: they must stay until the run. */
TENON_API int tenon_set_input(tenon_session *session, const char *name,
                              tenon_dtype dtype, const int64_t *shape,
                              uint32_t rank, const void *data);
TENON_API int tenon_set_input_at(tenon_session *session, size_t index,
                                 tenon_dtype dtype, const int64_t *shape,
                                 uint32_t rank, const void *data);
/** Has an output written to the caller's memory; null: the session's own. */
TENON_API int tenon_set_output_at(tenon_session *session, size_t index,
                                  void *data, uint64_t capacity);
TENON_API int tenon_run(tenon_session *session);
/** An output of the last run; its shape and data are valid until the next. */
TENON_API int tenon_get_output(tenon_session *session, size_t index,
                               tenon_tensor *tensor);
TENON_API int tenon_get_output_named(tenon_session *session, const char *name,
                                     tenon_tensor *tensor);

/*
 * Language models: feed tokens, read the logits of what comes next.
 *
 *   tenon_lm *lm = tenon_lm_create(model, 0);
 *   if (tenon_lm_feed(lm, prompt, count))
 *     fprintf(stderr, "%s\n", tenon_lm_error(lm));
 *   const float *logits = tenon_lm_logits(lm);
 *
 * The model remembers what it was fed: each further call gives new tokens only.
 */
typedef struct tenon_lm tenon_lm;

/** Null when the model does not continue text; see tenon_open_error(). */
TENON_API tenon_lm *tenon_lm_create(const tenon_model *model, unsigned threads);
TENON_API void tenon_lm_destroy(tenon_lm *lm);
TENON_API const char *tenon_lm_error(const tenon_lm *lm);
/** The number of logits; token ids are below it. */
TENON_API int64_t tenon_lm_vocabulary(const tenon_lm *lm);
/** How many tokens fit, INT64_MAX without a limit; how many there are. */
TENON_API int64_t tenon_lm_capacity(const tenon_lm *lm);
TENON_API int64_t tenon_lm_position(const tenon_lm *lm);
/** Appends tokens; 0 on success. */
TENON_API int tenon_lm_feed(tenon_lm *lm, const int64_t *tokens, size_t count);
/** Of the last feed, until the next. */
TENON_API const float *tenon_lm_logits(const tenon_lm *lm);
/** Forgets all tokens. */
TENON_API void tenon_lm_reset(tenon_lm *lm);

/*
 * Several texts side by side, which may go on at different speeds. Short ones
 * are padded: real[i] is 0 where tokens[i] is padding, before or behind the
 * text, and null says that none is. Where a model cannot take padding (it has
 * no attention_mask; or, between tokens, a sliding window; or a table of
 * positions and no position_ids) the rows are computed one after another from
 * then on, which reads the weights once for each.
 */
TENON_API tenon_lm *tenon_lm_create_rows(const tenon_model *model,
                                         unsigned threads, size_t rows);
TENON_API size_t tenon_lm_rows(const tenon_lm *lm);
/** tokens, and real, are [rows, count / rows] in C order; 0 on success. */
TENON_API int tenon_lm_feed_rows(tenon_lm *lm, const int64_t *tokens,
                                 const uint8_t *real, size_t count);
/** For what follows the last real token of a row; null: no such row. */
TENON_API const float *tenon_lm_logits_row(const tenon_lm *lm, size_t row);

/*
 * Text, where the model was compiled with --tokenizer. Both give how many ids,
 * or bytes, there are, and write as many of them as fit; -1 on failure.
 */

/** `special`: with the special tokens that the model expects around a text. */
TENON_API int64_t tenon_lm_encode(tenon_lm *lm, const char *text, size_t length,
                                  int special, int64_t *tokens,
                                  size_t capacity);
/** `special`: special tokens are written too. No NUL ends the text. */
TENON_API int64_t tenon_lm_decode(tenon_lm *lm, const int64_t *tokens,
                                  size_t count, int special, char *text,
                                  size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RUNTIME_C_API_H */
