/* SPDX-License-Identifier: MIT */
/*
 * Conditional nodes: handles and defaults, bodies that run 0, 1 and n times, nesting, errors.
 */
#include "tests/clients/drv_graph.h"

/*
 * setcond(handle, value): sets a condition. countdown(p, handle): --*p, and the condition is what is left.
 * Compiled device code reaches the driver in the same way.
 */
static const char cond_ptx[] =
	".version 7.5\n"
	".target sm_75\n"
	".address_size 64\n"
	".extern .func cudaGraphSetConditional\n"
	"(\n"
	"	.param .b64 cudaGraphSetConditional_param_0,\n"
	"	.param .b32 cudaGraphSetConditional_param_1\n"
	")\n"
	";\n"
	".visible .entry setcond(.param .u64 setcond_0, .param .u32 setcond_1)\n"
	"{\n"
	"	.reg .b32 %r<3>;\n"
	"	.reg .b64 %rd<3>;\n"
	"	ld.param.u64 %rd1, [setcond_0];\n"
	"	ld.param.u32 %r1, [setcond_1];\n"
	"	{ // callseq 0, 0\n"
	"	.reg .b32 temp_param_reg;\n"
	"	.param .b64 param0;\n"
	"	st.param.b64 [param0+0], %rd1;\n"
	"	.param .b32 param1;\n"
	"	st.param.b32 [param1+0], %r1;\n"
	"	call.uni \n"
	"	cudaGraphSetConditional, \n"
	"	(\n"
	"	param0, \n"
	"	param1\n"
	"	);\n"
	"	} // callseq 0\n"
	"	ret;\n"
	"}\n"
	".visible .entry countdown(.param .u64 countdown_0, .param .u64 countdown_1)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b32 %r<5>;\n"
	"	.reg .b64 %rd<3>;\n"
	"	ld.param.u64 %rd1, [countdown_0];\n"
	"	ld.param.u64 %rd2, [countdown_1];\n"
	"	mov.u32 %r3, %tid.x;\n"
	"	setp.ne.u32 %p1, %r3, 0;\n"
	"	@%p1 bra DONE;\n"
	"	ld.global.u32 %r1, [%rd1];\n"
	"	add.s32 %r2, %r1, -1;\n"
	"	st.global.u32 [%rd1], %r2;\n"
	"	{\n"
	"	.param .b64 param0;\n"
	"	st.param.b64 [param0+0], %rd2;\n"
	"	.param .b32 param1;\n"
	"	st.param.b32 [param1+0], %r2;\n"
	"	call.uni cudaGraphSetConditional, (param0, param1);\n"
	"	}\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

static CUfunction f_inc, f_set, f_countdown;
static CUdeviceptr a, b, left;
static CUcontext ctx;

/* A conditional node; its bodies are in the result's phGraph_out. */
static CUDA_CONDITIONAL_NODE_PARAMS add_cond(CUgraph g, const CUgraphNode *dep,
					     CUgraphConditionalHandle h,
					     CUgraphConditionalNodeType type, unsigned size,
					     CUgraphNode *ret)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};

	p.conditional.handle = h;
	p.conditional.type = type;
	p.conditional.size = size;
	p.conditional.ctx = ctx;
	must(cuGraphAddNode(ret, g, dep, NULL, dep ? 1 : 0, &p));
	return p.conditional;
}

static CUgraphNode add_inc(CUgraph g, const CUgraphNode *dep, CUdeviceptr *p)
{
	void *args[] = {p, &n_elems};
	CUDA_KERNEL_NODE_PARAMS k = kernel(f_inc, args);
	CUgraphNode n;

	must(cuGraphAddKernelNode(&n, g, dep, dep ? 1 : 0, &k));
	return n;
}

static CUgraphNode add_set(CUgraph g, const CUgraphNode *dep, CUgraphConditionalHandle h,
			   unsigned v)
{
	void *args[] = {&h, &v};
	CUDA_KERNEL_NODE_PARAMS k = kernel(f_set, args);
	CUgraphNode n;

	must(cuGraphAddKernelNode(&n, g, dep, dep ? 1 : 0, &k));
	return n;
}

static void by_default(void)
{
	static const struct {
		CUgraphConditionalNodeType type;
		unsigned size, value, ran; /* ran: the body, or size */
	} cases[] = {{CU_GRAPH_COND_TYPE_IF, 1, 0, 1},	   {CU_GRAPH_COND_TYPE_IF, 1, 7, 0},
		     {CU_GRAPH_COND_TYPE_IF, 2, 0, 1},	   {CU_GRAPH_COND_TYPE_IF, 2, 7, 0},
		     {CU_GRAPH_COND_TYPE_WHILE, 1, 0, 1},  {CU_GRAPH_COND_TYPE_SWITCH, 3, 0, 0},
		     {CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 2}, {CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 3}};

	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		CUgraphConditionalHandle h;
		CUDA_CONDITIONAL_NODE_PARAMS p;
		CUgraphNode cond, n;
		CUgraphExec exec;
		unsigned right = 0;
		CUgraph g;

		must(cuGraphCreate(&g, 0));
		must(cuGraphConditionalHandleCreate(&h, g, ctx, cases[c].value,
						    CU_GRAPH_COND_ASSIGN_DEFAULT));
		p = add_cond(g, NULL, h, cases[c].type, cases[c].size, &cond);
		for (unsigned i = 0; i < cases[c].size; i++) {
			CUDA_MEMSET_NODE_PARAMS f = fill(a, 100 + i);

			must(cuGraphAddMemsetNode(&n, p.phGraph_out[i], NULL, 0, &f, NULL));
		}
		add_inc(g, &cond, &a);
		must(cuGraphInstantiate(&exec, g, 0));
		for (unsigned i = 0; i < SEEDS; i++) {
			unsigned want = cases[c].ran < cases[c].size ? 101 + cases[c].ran : 11;

			must(cuMemsetD32(a, 10, N));
			schedule(i);
			must(cuGraphLaunch(exec, NULL));
			right += value(a) == want;
		}
		is_u64(right, SEEDS, "the body that the default picks, then what comes after it");
		schedule(0);
		must(cuGraphExecDestroy(exec));
		must(cuGraphDestroy(g));
	}
}

static void loops(void)
{
	CUgraphConditionalHandle h;
	CUDA_CONDITIONAL_NODE_PARAMS p;
	void *args[] = {&left, &h};
	CUDA_KERNEL_NODE_PARAMS k = kernel(f_countdown, args);
	CUgraphNode cond, n, twice;
	unsigned right = 0, times;
	CUgraphExec exec;
	CUgraph g, body;

	must(cuGraphCreate(&g, 0));
	must(cuGraphConditionalHandleCreate(&h, g, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	p = add_cond(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &cond);
	body = p.phGraph_out[0];
	n = add_inc(body, NULL, &a);
	twice = add_inc(body, &n, &a);
	must(cuGraphAddKernelNode(&n, body, &twice, 1, &k));
	add_inc(g, &cond, &b);
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned i = 0; i < SEEDS; i++) {
		times = 1 + i % 7;
		must(cuMemsetD32(a, 0, N));
		must(cuMemsetD32(b, 0, N));
		must(cuMemsetD32(left, times, 1));
		schedule(i);
		must(cuGraphLaunch(exec, NULL));
		must(cuMemsetD32Async(left, 2, 1, NULL));
		must(cuGraphLaunch(exec, NULL));
		right += value(b) == 2 && value(a) == 2 * (times + 2);
	}
	is_u64(right, SEEDS, "a loop runs until its condition is 0, launch after launch");
	schedule(0);

	/* Disabled and changed nodes in a body, in the executable graph only. */
	must(cuMemsetD32(a, 0, N));
	must(cuMemsetD32(left, 3, 1));
	is_cu(cuGraphNodeSetEnabled(exec, twice, 0), CUDA_SUCCESS, "disable a node of a body");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 3, "the rest of the body runs");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

/* A kernel before the node decides; a loop inside of a branch; two handles. */
static void nested(void)
{
	CUgraphConditionalHandle outer, inner;
	CUDA_CONDITIONAL_NODE_PARAMS p, q;
	void *args[] = {&left, &inner};
	CUgraphNode set, cond, loop, n;
	CUDA_KERNEL_NODE_PARAMS k;
	unsigned right = 0;
	CUgraphExec exec;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphConditionalHandleCreate(&outer, g, ctx, 0, 0));
	must(cuGraphConditionalHandleCreate(&inner, g, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	k = kernel(f_countdown, args);
	set = add_set(g, NULL, outer, 1);
	p = add_cond(g, &set, outer, CU_GRAPH_COND_TYPE_IF, 2, &cond);
	add_inc(p.phGraph_out[1], NULL, &a);
	q = add_cond(p.phGraph_out[0], NULL, inner, CU_GRAPH_COND_TYPE_WHILE, 1, &loop);
	add_inc(p.phGraph_out[0], &loop, &b);
	n = add_inc(q.phGraph_out[0], NULL, &b);
	must(cuGraphAddKernelNode(&n, q.phGraph_out[0], &n, 1, &k));
	n = add_set(g, &cond, outer, 0);
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(a, 0, N));
		must(cuMemsetD32(b, 0, N));
		must(cuMemsetD32(left, 4, 1));
		schedule(i);
		must(cuGraphLaunch(exec, NULL));
		right += value(a) == 0 && value(b) == 5;
	}
	is_u64(right, SEEDS, "a loop in a branch that a kernel chose");
	schedule(0);
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static float elapsed(CUgraphExec exec, unsigned times)
{
	CUevent from, to;
	float ms = -1;

	must(cuEventCreate(&from, 0));
	must(cuEventCreate(&to, 0));
	must(cuMemsetD32(left, times, 1));
	must(cuEventRecord(from, NULL));
	must(cuGraphLaunch(exec, NULL));
	must(cuEventRecord(to, NULL));
	must(cuMemsetD32Async(b, 0, N, NULL));
	must(cuEventSynchronize(to));
	must(cuEventElapsedTime(&ms, from, to));
	must(cuEventDestroy(from));
	must(cuEventDestroy(to));
	return ms;
}

static void captured_body(void)
{
	CUgraphConditionalHandle h;
	CUDA_CONDITIONAL_NODE_PARAMS p;
	void *inc[] = {&a, &n_elems}, *args[] = {&left, &h};
	CUgraphExec exec;
	CUgraphNode cond;
	float once, often;
	CUgraph g, same;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	must(cuGraphConditionalHandleCreate(&h, g, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	p = add_cond(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &cond);
	must(cuStreamBeginCaptureToGraph(s, p.phGraph_out[0], NULL, NULL, 0,
					 CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(drv_launch(f_inc, N, s, inc));
	is_cu(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE, "not while its body is captured");
	must(drv_launch(f_countdown, 1, s, args));
	must(cuStreamEndCapture(s, &same));
	ok(same == p.phGraph_out[0], "captured into the body");
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuMemsetD32(a, 0, N));
	once = elapsed(exec, 1);
	often = elapsed(exec, 5);
	is_u64(value(a), 6, "and run");
	ok(once > 0 && often > 4 * once, "bodies take their time (%g, %g ms)", once, often);
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
}

static CUresult try_cond(CUgraph g, CUgraphConditionalHandle h, CUgraphConditionalNodeType type,
			 unsigned size)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode n;

	p.conditional.handle = h;
	p.conditional.type = type;
	p.conditional.size = size;
	p.conditional.ctx = ctx;
	return cuGraphAddNode(&n, g, NULL, NULL, 0, &p);
}

static void wrong(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
	CUgraphConditionalHandle h, other;
	CUDA_HOST_NODE_PARAMS host = {free, NULL};
	CUDA_CONDITIONAL_NODE_PARAMS p;
	CUgraphExec exec, second;
	CUgraph g, f, child;
	CUgraphNode n, cond;

	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&f, 0));
	is_cu(cuGraphConditionalHandleCreate(&h, g, ctx, 0, 2), CUDA_ERROR_INVALID_VALUE, "flags");
	must(cuGraphConditionalHandleCreate(&h, g, ctx, 0, 0));
	must(cuGraphConditionalHandleCreate(&other, f, ctx, 0, 0));
	is_cu(try_cond(g, h, CU_GRAPH_COND_TYPE_WHILE, 2), CUDA_ERROR_INVALID_VALUE, "size");
	is_cu(try_cond(g, h, CU_GRAPH_COND_TYPE_IF, 3), CUDA_ERROR_INVALID_VALUE, "size");
	is_cu(try_cond(g, h, CU_GRAPH_COND_TYPE_SWITCH, 0), CUDA_ERROR_INVALID_VALUE, "size");
	is_cu(try_cond(g, other, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE,
	      "a handle of another graph");
	is_cu(cuGraphInstantiateWithParams(&exec, g, &how), CUDA_ERROR_INVALID_VALUE,
	      "a handle without its node");
	is_u64(how.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, "why");
	p = add_cond(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &cond);
	is_cu(try_cond(g, h, CU_GRAPH_COND_TYPE_IF, 1), CUDA_ERROR_INVALID_VALUE, "one node each");
	is_cu(cuGraphClone(&child, g), CUDA_ERROR_NOT_SUPPORTED, "no clone");
	is_cu(cuGraphAddChildGraphNode(&n, f, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED, "no child");
	is_cu(cuGraphDestroy(p.phGraph_out[0]), CUDA_ERROR_INVALID_VALUE, "a body stays");
	is_cu(cuGraphInstantiate(&exec, p.phGraph_out[0], 0), CUDA_ERROR_INVALID_VALUE,
	      "and is not run alone");
	must(cuGraphInstantiate(&exec, g, 0));
	is_cu(cuGraphInstantiate(&second, g, 0), CUDA_ERROR_INVALID_VALUE, "one instantiation");
	must(cuGraphExecDestroy(exec));
	must(cuGraphAddHostNode(&n, p.phGraph_out[0], NULL, 0, &host));
	is_cu(cuGraphInstantiateWithParams(&exec, g, &how), CUDA_ERROR_NOT_SUPPORTED,
	      "host functions are not for bodies");
	ok(how.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE && how.hErrNode_out == n,
	   "which says where");
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(f));

	must(cuGraphCreate(&g, 0));
	add_set(g, NULL, 12345, 1);
	must(cuGraphInstantiate(&exec, g, 0));
	cuGraphLaunch(exec, NULL);
	is_cu(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED, "a kernel sets what is no handle");
}

int main(void)
{
	CUmodule mod, own;

	ctx = drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	must(cuModuleLoadData(&own, cond_ptx));
	f_inc = drv_function(mod, "inc");
	f_set = drv_function(own, "setcond");
	f_countdown = drv_function(own, "countdown");
	must(cuMemAlloc(&a, N * 4));
	must(cuMemAlloc(&b, N * 4));
	must(cuMemAlloc(&left, 4));
	by_default();
	loops();
	nested();
	captured_body();
	wrong();
	cuCtxDestroy(ctx);
	return tap_done();
}
