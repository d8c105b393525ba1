// A stand-in for a PJRT plugin. It has the functions that pjrt_worker.py calls, on the structs of
// pjrt_c_api.h. It accepts only system descriptors of one version, as plugins do. The option "behave" makes
// it fail in one of several ways. Otherwise its binary is a copy of the file that STAND_IN_BINARY names. As
// IR, it writes the program, its options and the PATH.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  size_t size;
  void* extensions;
  const char* error;
  const char* message;
  size_t length;
} Error;
typedef struct {
  size_t size;
  void* extensions;
  void* unused[6];
  void* client;
} Create;
typedef struct {
  size_t size;
  void* extensions;
  const char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
} Program;
typedef struct {
  size_t size;
  void* extensions;
  void* client;
  Program* program;
  const char* options;
  size_t options_size;
  void* executable;
} Compile;

static char text[4096], system_file[4096];
static int clients, executables;

static char* fail(const char* message) { return strdup(message); }

static void error_destroy(Error* arguments) { free((char*)arguments->error); }

static void error_message(Error* arguments) {
  arguments->message = arguments->error;
  arguments->length = strlen(arguments->error);
}

static char* initialize(void* arguments) { return arguments ? NULL : fail("no arguments"); }

static char* create(Create* arguments) {
  snprintf(system_file, sizeof system_file, "%s", getenv("TT_COMPILE_ONLY_SYSTEM_DESC"));
  arguments->client = &clients;
  clients++;
  return clients == 1 ? NULL : fail("there are two clients");
}

static char* client_destroy(Create* arguments) {
  return clients-- == 1 && arguments ? NULL : fail("there is no client");
}

static char* executable_destroy(void* arguments) {
  return executables-- == 1 && arguments ? NULL : fail("destroyed twice");
}

static size_t varint(const unsigned char** at) {
  size_t value = 0;
  for (int shift = 0;; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (size_t)(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

// The text of an option: env_option_overrides { key: name, value { string_field: text } }.
static const char* option(const Compile* c, const char* name) {
  const unsigned char* at = memmem(c->options, c->options_size, name, strlen(name));
  if (!at) return NULL;
  at += strlen(name);
  if (*at++ != 0x12) return NULL;
  varint(&at);
  if (*at++ != 0x0a) return NULL;
  size_t length = varint(&at);
  snprintf(text, sizeof text, "%.*s", (int)length, at);
  return text;
}

static void put(const char* folder, const char* name, const char* data, size_t size) {
  char path[8192];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "wb");
  for (size_t i = 0; i < size; i++) fputc(data[i], file);
  fclose(file);
}

static void copy_binary(const char* folder) {
  static char data[1 << 20];
  FILE* file = fopen(getenv("STAND_IN_BINARY"), "rb");
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  put(folder, "fb_1.ttnn", data, size);
}

static char* compile(Compile* c) {
  printf("stand-in: %zu bytes for %s\n", c->program->code_size, system_file);
  fflush(stdout);
  if (!strstr(system_file, "f0b54f15"))
    return fail("'builtin.module' op system desc schema mismatch, please collect");
  if (c->program->format_size != 4 || memcmp(c->program->format, "mlir", 4)) return fail("unknown format");
  const char* behave = option(c, "behave");
  if (behave && !strcmp(behave, "refuse")) {
    fprintf(stderr,
            "loc(\"erf: aten.erf.default\"(\"/home/u/model.py\":12:3)): error: failed to legalize operation "
            "'chlo.erf'\n");
    return fail("failed to legalize operation 'chlo.erf'");
  }
  if (behave && !strcmp(behave, "fail")) return fail("out of luck");
  if (behave && !strcmp(behave, "crash")) abort();
  while (behave && !strcmp(behave, "hang")) pause();
  char folder[4096], irs[5000], options[8192];
  snprintf(folder, sizeof folder, "%s", option(c, "export_path"));
  snprintf(irs, sizeof irs, "%s/irs", folder);
  mkdir(folder, 0777);
  mkdir(irs, 0777);
  for (size_t i = 0; i < c->options_size; i++) options[i] = c->options[i] < ' ' ? ' ' : c->options[i];
  put(irs, "shlo_compiler_1.mlir", c->program->code, c->program->code_size);
  put(irs, "ttir_2.mlir", options, c->options_size);
  put(irs, "ttnn_runtime_3.mlir", getenv("PATH"), strlen(getenv("PATH")));
  copy_binary(folder);
  executables++;
  c->executable = &executables;
  return NULL;
}

static void* api[200] = {[0] = (void*)sizeof(void* [200]),
                         [5] = error_destroy,
                         [6] = error_message,
                         [8] = initialize,
                         [15] = create,
                         [16] = client_destroy,
                         [25] = compile,
                         [55] = executable_destroy};

void* GetPjrtApi(void) { return api; }
