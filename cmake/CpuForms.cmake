# The forms that kernels are compiled in, for programs that hold one of them.
set(cpu_form_flags_generic -march=x86-64)
set(cpu_form_flags_avx2 -mavx2 -mfma -mf16c)
set(cpu_form_flags_avx512 ${cpu_form_flags_avx2}
    -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(cpu_form_flags_avx512vnni ${cpu_form_flags_avx512} -mavx512vnni)
set(cpu_form_flags_avx512amx ${cpu_form_flags_avx512vnni}
    -mamx-tile -mamx-bf16)
set(cpu_form_root "${CMAKE_CURRENT_LIST_DIR}/..")

# Compiles PROGRAM for FORM; on a CPU without it, it ends with status 77.
function(tenon_cpu_form program form)
  target_sources(${program} PRIVATE
    "${cpu_form_root}/test/kernels/require_form.cpp")
  target_include_directories(${program} PRIVATE
    "${cpu_form_root}" "${cpu_form_root}/codegen")
  target_compile_features(${program} PRIVATE cxx_std_20)
  target_compile_options(${program} PRIVATE ${cpu_form_flags_${form}})
  target_compile_definitions(${program} PRIVATE TN_CPU_FORM="${form}")
endfunction()
