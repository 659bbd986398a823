/* Runs bert-tiny from a shared library: library IDS MASK TYPES OUT, raw files.
   Faulty ids are refused first, and the session used on. */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batch = 2, length = 16 };

static void read_ids(const char *path, int64_t *to) {
  FILE *file = fopen(path, "rb");
  if (!file || fread(to, 8, batch * length, file) != batch * length) {
    fprintf(stderr, "%s: cannot be read\n", path);
    exit(2);
  }
  fclose(file);
}

int main(int argc, char **argv) {
  static int64_t inputs[3][batch * length];
  const int64_t shape[2] = {batch, length};
  tenon_model *model = tenon_open();
  tenon_session *session = model ? tenon_session_create(model, 2) : NULL;
  if (argc != 5 || !session) {
    fprintf(stderr, "%s\n", tenon_open_error());
    return 2;
  }
  for (size_t i = 0; i < tenon_num_inputs(model); ++i) {
    read_ids(argv[1 + i], inputs[i]);
    if (tenon_set_input(session, tenon_input_name(model, i), TENON_I64, shape,
                        2, inputs[i]))
      return 3;
  }
  tenon_tensor out;
  int64_t right = inputs[0][17];
  inputs[0][17] = 512;
  if (!tenon_run(session) || !tenon_get_output(session, 0, &out))
    return 4;
  inputs[0][17] = 512;
  tenon_run(session);
  printf("%s\n", tenon_session_error(session));
  inputs[0][17] = right;
  if (tenon_run(session) ||
      tenon_get_output_named(session, "last_hidden_state", &out)) {
    fprintf(stderr, "%s\n", tenon_session_error(session));
    return 5;
  }
  printf("%s %u %lld %lld %lld\n", tenon_output_name(model, 0), out.rank,
         (long long)out.shape[0], (long long)out.shape[1],
         (long long)out.shape[2]);
  FILE *file = fopen(argv[4], "wb");
  if (!file || fwrite(out.data, 1, out.bytes, file) != out.bytes)
    return 6;
  fclose(file);
  tenon_session_destroy(session);
  tenon_close(model);
  return 0;
}
