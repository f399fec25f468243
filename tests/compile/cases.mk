# How the header is dropped into programs, as data for the Makefile. An object is FILE@WAY+WAY: a source of this folder
# and the ways in which it is compiled; .so makes a shared library of it. What stands under
#
#   linked    is linked (flags in front) and run; the parts of parts.cpp check that each meets its own gpukit
#   refused   must not link, or not compile if it is a single object, and the reason must be what `says` has, in no more
#             lines than `lines` has, if anything (lines.CASE.nvcc: by nvcc alone)
#   symbols   goes to symbols.sh
#   modes     is a way, or several, in which the whole API has to compile
#
# by g++ or clang++ with the stand-in (cpu) and by nvcc. make test takes a few of nvcc's cases, make test-all all.

# Flags for both compilers, and for one of them.
way.impl         := -DGPUKIT_IMPLEMENTATION
way.static       := -DGPUKIT_STATIC
way.tag          := -DGPUKIT_TAG=mine
way.other        := -DOTHER_VERSION
way.2            := -DPART=2
way.3            := -DPART=3
way.4            := -DPART=4
way.clangd       := -D__CLANGD__
way.vscode       := -D__INTELLISENSE__
way.below        := -DBELOW
way.first        := -DGPUKIT_FIRST
way.too_old.cpu  := -D__CUDA_ARCH__=700
way.too_old.nvcc := -std=c++98
way.inside       := -DINSIDE_A_NAMESPACE
way.extern_c     := -DINSIDE_EXTERN_C
way.nccl         := -DGPUKIT_NCCL
way.no_size      := -DMISTAKE_NO_SIZE
way.unread       := -DMISTAKE_UNREAD
way.no_half      := -DMISTAKE_NO_HALF=1
way.no_half_2    := -DMISTAKE_NO_HALF=2
way.no_half_3    := -DMISTAKE_NO_HALF=3
way.no_half_4    := -DMISTAKE_NO_HALF=4
way.operator_1   := -DMISTAKE_OPERATOR=1
way.operator_2   := -DMISTAKE_OPERATOR=2
way.one_less     := -DMISTAKE_ARGUMENTS=1
way.one_more     := -DMISTAKE_ARGUMENTS=2
way.wrong_type   := -DMISTAKE_ARGUMENTS=3
way.integers     := -DMISTAKE_TYPES=1
way.wider_c      := -DMISTAKE_TYPES=2
way.const_output := -DMISTAKE_TYPES=3
way.shape_only   := -DMISTAKE_ARGUMENTS=4
way.c23          := -std=c2x
way.20.cpu       := -std=c++20
way.hidden.cpu   := -fPIC -fvisibility=hidden
way.hidden.nvcc  := -Xcompiler=-fPIC,-fvisibility=hidden
way.thread.cpu   := -DCUDA_API_PER_THREAD_DEFAULT_STREAM=1
way.thread.nvcc  := --default-stream per-thread
way.old.cpu      := -D__CUDA_ARCH_LIST__=750
way.old.nvcc     := -arch=sm_75
way.new.cpu      := -D__CUDA_ARCH_LIST__=800
way.new.nvcc     := -arch=sm_80
way.several.nvcc := -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 \
                    -gencode arch=compute_80,code=compute_80
way.every.nvcc   := -arch=all
way.ptx.nvcc     := -arch=compute_75
way.merged.nvcc  := -static-global-template-stub=false
way.rdc.nvcc     := -rdc=true
way.lto.nvcc     := -rdc=true -dlto
way.lambda.nvcc  := --extended-lambda
way.fast.nvcc    := --use_fast_math
way.debug.nvcc   := -G
way.half         := -DOF_HALF
way.once         := -DGPUKIT_PRODUCTS_F16 -DGPUKIT_PRODUCTS_BF16
way.hopper.nvcc  := -gencode arch=compute_90a,code=sm_90a
way.plain90.nvcc := -gencode arch=compute_90,code=sm_90
$(foreach std,11 14 17 20,$(eval way.$(std).nvcc := -std=c++$(std)))

linked.hostile   := hostile@
linked.macro_names := macro_names@
linked.below     := hostile@below
linked.libraries := -lcublas libraries@
linked.libraries_below := -lcublas libraries@first
linked.groups    := libraries@
linked.groups_below := libraries@first
linked.bare      := bare@
linked.bare_static := bare@static
linked.twice     := twice@
linked.c99       := c99@ c99_implementation@
linked.c99_cpp   := c99_as_cpp@ c99_implementation@
linked.c99_clang := c99_as_cpp@clang c99_implementation@
linked.c23       := c99@c23 c99_implementation@
linked.c99_cpp20 := c99_as_cpp@20 c99_implementation@
linked.two       := parts@ part@impl part@
linked.five      := parts@ part@impl part@ part@2 part@3 part@4
linked.static    := parts@ part@static part@static+2 part@impl part@
linked.archs     := parts@ part@impl+old part@new
linked.settings  := parts@ part@impl part@thread part@tag+impl part@tag+2 part@static
linked.versions  := parts@ part@impl part@ part@other+impl part@other+2
linked.clangd    := parts@ part@clangd
linked.vscode    := parts@ part@vscode
linked.shared    := -Xlinker --no-as-needed parts@ part@impl part@hidden+impl.so
linked.stds      := parts@ part@impl+11 part@14 part@17 part@20
linked.flags     := parts@ part@impl+lambda part@fast part@debug part@several part@every part@ptx
linked.rdc       := -rdc=true parts@ part@rdc+impl part@rdc
linked.rdc_many  := -rdc=true parts@ part@rdc+impl part@rdc part@rdc+2 part@rdc+other+impl part@rdc+tag+impl \
                    part@rdc+static part@rdc+static+2
linked.lto       := -rdc=true -dlto parts@ part@lto+impl part@lto
linked.once      := parts@ product@impl+once product@once+half product@once product@half
linked.hopper    := parts@ product@impl+half+hopper product@plain90
linked.merged_hopper   := parts@ product@merged+impl+hopper product@merged+plain90
linked.merged_archs    := parts@ part@merged+impl+old part@merged+new
linked.merged_settings := parts@ part@merged+impl part@merged+thread part@merged+tag+fast+impl part@merged+static
linked.merged_versions := parts@ part@merged+impl part@merged+other+impl

refused.missing  := parts@ part@
says.missing     := gk_v0_2_0_needs_GPUKIT_IMPLEMENTATION_in_exactly_one_cu_file
refused.too_many := parts@ part@impl part@impl+2
says.too_many    := multiple definition.*gk_v0_2_0_needs_GPUKIT_IMPLEMENTATION_in_exactly_one_cu_file
refused.version  := parts@ part@impl part@other+2
says.version     := gk_v0_3_0_needs_GPUKIT_IMPLEMENTATION_in_exactly_one_cu_file
refused.c_api    := c99@ part@impl
says.c_api       := gk_v0_2_0_needs_GPUKIT_IMPLEMENTATION_with_GPUKIT_C_API_in_one_cu_file
refused.c_version := c99@ c99_implementation@other
says.c_version   := gk_v0_2_0_needs_GPUKIT_IMPLEMENTATION_with_GPUKIT_C_API_in_one_cu_file
refused.once     := parts@ product@impl product@once+half
says.once        := gk_matmul<__half
refused.once_static := product@once+static
says.once_static := with GPUKIT_STATIC files share nothing
refused.inside   := refused@inside
says.inside      := gk_ERROR_gpukit_cuh_is_included_inside_a_namespace
refused.extern_c := refused@extern_c
says.extern_c    := gk_ERROR_gpukit_cuh_is_included_inside_extern_C
lines.extern_c.nvcc := 5
refused.arch     := refused@too_old
says.arch        := gpukit.cuh needs sm_75 or newer
refused.standard := refused_in_cpp@too_old
says.standard    := gpukit.cuh needs C++11 or newer
refused.cpp      := refused_in_cpp@
says.cpp         := GPUKIT_IMPLEMENTATION belongs in a .cu file
refused.nccl     := refused@nccl
says.nccl        := include <nccl.h> before gpukit.cuh
refused.mistake  := refused@no_size
says.mistake     := gk_device_query
refused.unread   := refused@unread
says.unread      := gk_reduce_sum.*nodiscard\|declared with "nodiscard"
refused.unread_c := refused_in_c@c23
says.unread_c    := gk_device_print.*nodiscard
# Misuses of templates, which are one sentence.
of_half          := no_half no_half_2 no_half_3 no_half_4
of_operator      := operator_1 operator_2
of_arguments     := one_less one_more wrong_type
one_sentence     := $(of_half) $(of_operator) $(of_arguments) integers wider_c const_output
$(foreach case,$(one_sentence),$(eval refused.$(case) := refused@$(case)) $(eval lines.$(case) := 25))
$(foreach case,$(of_half),$(eval says.$(case) := need these types: .include <cuda_fp16.h> or <cuda_bf16.h>))
$(foreach case,$(of_operator),$(eval says.$(case) := a functor with A operator()(A, A) const and A identity() const))
says.one_less    := the kernel has more parameters, or fewer, than arguments are given
says.one_more    := the kernel has more parameters, or fewer, than arguments are given
says.wrong_type  := an argument does not convert to the type of the kernel.s parameter
says.integers    := gk_matmul: A and B are of float, double, __half or __nv_bfloat16
says.wider_c     := gk_matmul: C has the type of A and B, or float where these are half types
says.const_output := the output is const: inputs come first
refused.shape_only := refused@shape_only
says.shape_only  := gk__launch
lines.shape_only := 25

symbols.named    := named c99_implementation@
symbols.hidden   := hidden part@hidden+impl.so
symbols.versions := apart part@merged+impl part@merged+other+impl
symbols.archs    := apart part@merged+impl+old part@merged+new
symbols.streams  := apart part@merged+impl part@merged+thread
symbols.static   := apart part@static part@static+2
symbols.tag      := apart part@merged+impl part@merged+tag+fast+impl

linked_cpu   := hostile macro_names below groups groups_below bare bare_static twice c99 c99_cpp c23 c99_cpp20 two five static archs settings \
                versions clangd vscode shared once $(if $(shell command -v clang++),c99_clang)
linked_nvcc  := hostile macro_names twice two rdc merged_versions
refused_cpu  := missing too_many version c_api inside extern_c arch nccl mistake unread unread_c $(one_sentence) shape_only \
                once once_static
refused_nvcc := missing extern_c cpp standard mistake unread no_half operator_1 one_less
symbols_nvcc := versions
modes        := compute_90a+11
ifneq ($(in_all),)
  linked_nvcc  := $(filter-out vscode groups%,$(linked_cpu)) libraries libraries_below stds flags rdc \
                  rdc_many lto hopper merged_hopper merged_archs merged_settings merged_versions
  # A toolkit without all of its parts cannot link what -dlto has compiled, no program whatever.
  lto_links    := $(shell d=$$(mktemp -d) && cd $$d && echo 'int main() { return 0; }' >a.cu && \
                    '$(NVCC)' -rdc=true -dlto a.cu -o a 2>/dev/null && echo yes; rm -rf "$$d")
  unlinkable   := $(if $(lto_links),,lto)
  linked_nvcc  := $(filter-out $(unlinkable),$(linked_nvcc))
  refused_nvcc := $(filter-out arch,$(refused_cpu)) cpp standard
  refused_cpu  += c_version # of functions of plain C, whose names are the same by nvcc
  symbols_nvcc := named hidden versions archs streams static tag
  more_archs   := $(filter-out sm_75 sm_90a,$(patsubst compute_%,sm_%,$(shell '$(NVCC)' --list-gpu-arch 2>/dev/null)))
  modes        += compute_90a+14 compute_90a+20 sm_90a+17 static tag several rdc lto thread lambda fast merged \
                  static+rdc rdc+debug sm_80+debug
endif

build/compile/%@clang.cpu.o build/compile/%@clang.nvcc.o: CXX := clang++

# The whole API for the oldest target and for Hopper by the standards; for the targets that test-all adds, by one of
# them, without the host's code, which is the same for all. PTX alone is what the modes without a target are, and
# Hopper's but one: with less effort than users have it, ptxas may find no registers for that code. What it makes of
# sm_75, optimised, is seen in rdc. (-arch=compute_90a would compile for compute_90 as well.)
way.sm_75.nvcc   := -arch=sm_75
way.sm_90a.nvcc  := $(way.hopper.nvcc)
way.compute_90a.nvcc := -gencode arch=compute_90a,code=compute_90a
$(foreach arch,$(more_archs),$(eval way.$(arch).nvcc := -arch=$(arch) -cubin))
modes += sm_75+11 $(more_archs:%=%+14)
